//! Error texts of a peer, made fit for records.

use form_urlencoded::byte_serialize;
use serde_json::Value;

use crate::SecretText;

/// Longest text that is kept of a peer's answer, in characters.
const LONGEST: usize = 300;

/// Replacement for a secret that a peer repeats in its answer.
const HIDDEN: &str = "[hidden]";

/// Returns the error text of an answer: the text for people in a JSON document or an S3 error, else the whole body.
pub(crate) fn of(body: &[u8], secrets: &[SecretText]) -> String {
    let text = String::from_utf8_lossy(body);
    let text_found = match serde_json::from_slice::<Value>(body) {
        Ok(document) => text_for_people(&document),
        Err(_) => s3_error(&text),
    };
    tidy(&text_found.unwrap_or_else(|| text.into_owned()), secrets)
}

/// Returns `text` in one line of bounded length, without control characters and `secrets`.
pub(crate) fn tidy(text: &str, secrets: &[SecretText]) -> String {
    let mut text = text.to_owned();
    for written in secrets.iter().flat_map(ways_to_write) {
        if !written.is_empty() {
            text = text.replace(&written, HIDDEN);
        }
    }
    let printable = text.replace(|c: char| c.is_control() || turns_text(c), " ");
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some(_) => line.chars().take(LONGEST - 1).chain(['…']).collect(),
        None => line,
    }
}

/// Returns the forms of a secret that a peer may repeat: plain, in a form and in JSON.
fn ways_to_write(secret: &SecretText) -> [String; 3] {
    let plain = secret.reveal();
    let json = Value::from(plain).to_string();
    [plain.to_owned(), byte_serialize(plain.as_bytes()).collect(), json[1..json.len() - 1].to_owned()]
}

/// Describes the error of a JSON document without the wrong value, which may be a secret and differs between
/// documents with the same error.
pub(crate) fn of_json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let shown = match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) if first < last => format!("{}…{}", &text[..=first], &text[last..]),
        (_, _) => text,
    };
    format!("not the JSON that was expected: {}", tidy(&shown, &[]))
}

/// Returns whether the character changes the direction of the following text.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text for people: problem documents (RFC 9457), OAuth2 errors, Redfish errors, and similar ones.
fn text_for_people(document: &Value) -> Option<String> {
    if let Some(text) = document.get("error_message").and_then(Value::as_str) {
        return openstack(text);
    }
    let members = ["detail", "error_description", "title", "message", "error"];
    members.iter().filter_map(|name| document.get(name)).find_map(text_of)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Object(_) => redfish(value).or_else(|| Some(value.to_string())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Some(value.to_string()),
    }
}

/// Returns the text of an error of an OpenStack service, which is a JSON document within a JSON text.
fn openstack(text: &str) -> Option<String> {
    let inner: Option<Value> = serde_json::from_str(text).ok();
    let members = ["faultstring", "description"];
    let found = inner.and_then(|inner| members.iter().filter_map(|name| inner.get(name)).find_map(text_of));
    found.or_else(|| Some(text.to_owned())).filter(|text| !text.trim().is_empty())
}

/// Returns the messages of a Redfish error object; its own message is mostly "see the extended information".
fn redfish(error: &Value) -> Option<String> {
    let extended = error.get("@Message.ExtendedInfo").and_then(Value::as_array);
    let messages = extended.into_iter().flatten().filter_map(|info| info.get("Message")?.as_str());
    let joined = messages.collect::<Vec<_>>().join("; ");
    if joined.is_empty() { error.get("message")?.as_str().map(str::to_owned) } else { Some(joined) }
}

/// Returns code and message of an XML error document of S3. Its other elements repeat the request, with the name of
/// the key and the signed text.
fn s3_error(document: &str) -> Option<String> {
    let (_, error) = document.split_once("<Error")?;
    let element = |name: &str| {
        let (_, content) = error.split_once(&format!("<{name}>"))?;
        Some(unescaped(content.split_once("</")?.0))
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message),
    }
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    plain.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn error_text_is_the_text_for_people() {
        let long = "é".repeat(400);
        let bodies: [(&[u8], &str); 21] = [
            (br#"{"type":"about:blank","title":"Bad Request","detail":"no xname","status":400}"#, "problem"),
            (br#"{"title":"Bad Request"}"#, "title alone"),
            (br#"{"detail":"","message":"no such group"}"#, "empty detail"),
            (br#"{"code":404,"message":"no such group"}"#, "message"),
            (br#"{"error":"invalid_client","error_description":"wrong secret"}"#, "oauth2"),
            (br#"{"error":"nothing works"}"#, "error"),
            (br#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "list"),
            (br#"{"error":{"code":"Base.1.0.GeneralError","message":"busy"}}"#, "redfish"),
            (
                br#"{"error":{"message":"see below","@Message.ExtendedInfo":[{"Message":"fan"},{"Message":"psu"}]}}"#,
                "redfish, extended",
            ),
            (br#"{"error_message":"{\"faultstring\":\"no node\",\"debuginfo\":null}"}"#, "openstack"),
            (br#"{"error_message":"no JSON"}"#, "openstack, plain"),
            (br#"{"other":1}"#, "unknown document"),
            (b"<html>\r\n  <body>\n502\tBad\0 Gateway</body></html>", "page"),
            (
                b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>no &lt;x&gt; &amp;amp; no\n\
                y</Message><AWSAccessKeyId>k</AWSAccessKeyId></Error>",
                "S3",
            ),
            (b"<Error xmlns=\"u\"><Code>AccessDenied</Code><Message/></Error>", "S3, code alone"),
            (b"<Error><Code>broken off", "S3, cut"),
            (b"plain\x1b[31m red", "terminal codes"),
            ("a\u{202e}b".as_bytes(), "direction"),
            (b"\xff\xfe", "not UTF-8"),
            (long.as_bytes(), "long"),
            (b"", "nothing"),
        ];
        let mut table = String::new();
        for (body, what) in bodies {
            let words = of(body, &[]);
            assert!(words.chars().count() <= LONGEST);
            let shown = words.chars().take(60).collect::<String>();
            writeln!(table, "{what:<18} | {shown}").unwrap();
        }
        expect![[r#"
            problem            | no xname
            title alone        | Bad Request
            empty detail       | no such group
            message            | no such group
            oauth2             | wrong secret
            error              | nothing works
            list               | [{"loc":["body"],"msg":"field required"}]
            redfish            | busy
            redfish, extended  | fan; psu
            openstack          | no node
            openstack, plain   | no JSON
            unknown document   | {"other":1}
            page               | <html> <body> 502 Bad Gateway</body></html>
            S3                 | NoSuchKey: no <x> &amp; no y
            S3, code alone     | AccessDenied
            S3, cut            | <Error><Code>broken off
            terminal codes     | plain [31m red
            direction          | a b
            not UTF-8          | ��
            long               | éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé
            nothing            | 
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn values_of_json_documents_do_not_show() {
        let mut table = String::new();
        for text in [r#"["s3 \" cret"]"#, r#"{"a": 1}"#, r#""s3cret""#, "[1", "[256]"] {
            let error = serde_json::from_str::<Vec<u8>>(text).unwrap_err();
            writeln!(table, "{}", of_json_error(&error)).unwrap();
        }
        assert!(!table.contains("s3"), "{table}");
        expect![[r#"
            not the JSON that was expected: invalid type: string "…", expected u8 at line 1 column 13
            not the JSON that was expected: invalid type: map, expected a sequence at line 1 column 0
            not the JSON that was expected: invalid type: string "…", expected a sequence at line 1 column 8
            not the JSON that was expected: EOF while parsing a list at line 1 column 2
            not the JSON that was expected: invalid value: integer `256`, expected u8 at line 1 column 4
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_secret_that_is_sent_back_is_hidden() {
        let secrets = [SecretText::new("s3cret"), SecretText::new("")];
        assert_eq!(of(br#"{"message":"bad token s3cret"}"#, &secrets), "bad token [hidden]");
        let odd = [SecretText::new("s3 &\"cret")];
        for body in ["id=a&secret=s3+%26%22cret", r#"{"given":{"secret":"s3 &\"cret"}}"#] {
            let words = of(body.as_bytes(), &odd);
            assert!(words.contains(HIDDEN) && !words.contains("cret\"}") && !words.contains("s3"), "{words}");
        }
        let signed = b"<Error><Message>s3 &amp;&quot;cret is wrong</Message></Error>";
        assert_eq!(of(signed, &odd), "[hidden] is wrong");
    }
}
