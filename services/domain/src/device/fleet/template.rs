//! Templates of specs: texts in which parameters stand for facts about a device.

use std::{iter::Peekable, str::Chars, sync::Arc};

use crate::device::{
    fleet::parameter::{ParameterError, ParameterFlaw, has_parameters, substitute},
    record::{
        DeviceMeta,
        spec::{DeviceSpec, OsTarget},
    },
};

/// Returns the spec that a template gives a device. A template without parameters is shared by all devices.
///
/// # Errors
/// When a parameter cannot be read, or when the device lacks the label that one names.
pub fn fill(template: &DeviceSpec, meta: &DeviceMeta) -> Result<DeviceSpec, ParameterError> {
    let os = template.os.as_ref().map(|os| fill_os(os, meta)).transpose()?;
    Ok(DeviceSpec { os, decommissioning: None, document: fill_document(&template.document, meta)? })
}

fn fill_os(os: &OsTarget, meta: &DeviceMeta) -> Result<OsTarget, ParameterError> {
    Ok(match os {
        OsTarget::Image(image) => OsTarget::Image(fill_name(image, meta)?),
        OsTarget::CatalogItem { catalog, item, version } => OsTarget::CatalogItem {
            catalog: fill_name(catalog, meta)?,
            item: fill_name(item, meta)?,
            version: fill_name(version, meta)?,
        },
    })
}

fn fill_name(name: &Arc<str>, meta: &DeviceMeta) -> Result<Arc<str>, ParameterError> {
    let filled = substitute(name, meta)?;
    match filled.is_empty() {
        true => Err(ParameterError { parameter: name.to_string(), flaw: ParameterFlaw::Empty }),
        false => Ok(filled),
    }
}

/// Fills the parameters in the texts of a JSON document that has no space between its parts. Values are escaped, and
/// names of members stay, so no label can change the document's structure.
fn fill_document(document: &Arc<str>, meta: &DeviceMeta) -> Result<Arc<str>, ParameterError> {
    if !has_parameters(document) {
        return Ok(Arc::clone(document));
    }
    let mut filled = String::with_capacity(document.len());
    let mut rest = document.chars().peekable();
    while let Some(character) = rest.next() {
        filled.push(character);
        if character == '"' {
            let text = read_text(&mut rest).into();
            let is_name = rest.peek() == Some(&':');
            let text = if is_name { text } else { substitute(&text, meta)? };
            write_text(&mut filled, &text);
            filled.push('"');
        }
    }
    Ok(filled.into())
}

/// Reads the rest of a JSON text, with the quotation mark that ends it.
fn read_text(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(character) = rest.next() {
        match character {
            '"' => break,
            '\\' => text.push(read_escape(rest)),
            character => text.push(character),
        }
    }
    text
}

fn read_escape(rest: &mut Peekable<Chars<'_>>) -> char {
    match rest.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => read_unicode(rest),
        Some(other) => other,
        None => '\\',
    }
}

/// Reads the digits of an escaped character. Characters beyond the basic plane are a pair of escapes.
fn read_unicode(rest: &mut Peekable<Chars<'_>>) -> char {
    let first = read_unit(rest);
    let is_pair = (0xd800..0xdc00).contains(&first) && rest.next_if_eq(&'\\').is_some();
    if !is_pair {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    rest.next_if_eq(&'u');
    let second = read_unit(rest);
    let joined = 0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff);
    char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn read_unit(rest: &mut Peekable<Chars<'_>>) -> u32 {
    (0..4).fold(0, |unit, _| {
        let digit = rest.next_if(char::is_ascii_hexdigit).and_then(|digit| digit.to_digit(16));
        unit * 16 + digit.unwrap_or_default()
    })
}

fn write_text(filled: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => filled.push_str("\\\""),
            '\\' => filled.push_str("\\\\"),
            '\u{8}' => filled.push_str("\\b"),
            '\u{c}' => filled.push_str("\\f"),
            '\n' => filled.push_str("\\n"),
            '\r' => filled.push_str("\\r"),
            '\t' => filled.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                filled.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => filled.push(other),
        }
    }
}
