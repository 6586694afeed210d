//! Field selectors: keys of each kind of resource, their types, and how they match.

use crate::{
    core::{invalid::Invalid, time::Timestamp},
    device::selector::{
        syntax::{self, SelectorOperator},
        time,
    },
};

/// Field of a refusal.
const FIELD: &str = "fieldSelector";

/// Value of a field of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Texts that the field stands for, of which any may match. A missing text matches nothing.
    Texts([Option<&'a str>; 2]),
    /// Point in time.
    Time(Timestamp),
}

impl<'a> FieldValue<'a> {
    /// Makes the value of a field that is a text.
    pub fn text(text: &'a str) -> Self {
        Self::Texts([Some(text), None])
    }

    /// Makes the value of a field that may be missing.
    pub fn optional(text: Option<&'a str>) -> Self {
        Self::Texts([text, None])
    }
}

/// Key of a field by which resources of one kind are selected.
pub trait SelectorField: Copy + 'static {
    /// Every key, in the order in which refusals list them.
    const ALL: &'static [Self];

    /// The key in selectors.
    fn key(self) -> &'static str;

    /// Returns whether the field is a point in time.
    fn is_time(self) -> bool;
}

/// Requirements on fields, all of which must hold. Without any, every resource matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSelector<F>(Vec<FieldRequirement<F>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement<F> {
    field: F,
    operator: SelectorOperator,
    wanted: WantedValues,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum WantedValues {
    Texts(Vec<String>),
    Times(Vec<Timestamp>),
}

impl<F: SelectorField> FieldSelector<F> {
    /// Reads a selector.
    ///
    /// # Errors
    /// When the text is no selector; when a key is not known, with the known ones; when an operator or a value does not
    /// fit the field.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let requirements = syntax::parse(FIELD, text)?.into_iter().map(|raw| {
            let field = known_field(&raw.key)?;
            check_operator(field, raw.operator)?;
            let wanted = if F::is_time(field) {
                WantedValues::Times(
                    raw.values.iter().map(|value| read_time(value)).collect::<Result<_, _>>()?,
                )
            } else {
                WantedValues::Texts(raw.values)
            };
            Ok(FieldRequirement { field, operator: raw.operator, wanted })
        });
        Ok(Self(requirements.collect::<Result<_, _>>()?))
    }

    /// Returns conditions for an index of fields: each field of the result has one of these texts in every resource that
    /// matches. Requirements that an index does not help with are left out.
    pub fn index_conditions(&self) -> impl Iterator<Item = (F, &[String])> {
        self.0.iter().filter_map(|FieldRequirement { field, operator, wanted }| match (operator, wanted) {
            (SelectorOperator::Equals | SelectorOperator::In, WantedValues::Texts(texts)) => {
                Some((*field, texts.as_slice()))
            }
            (_, WantedValues::Texts(_) | WantedValues::Times(_)) => None,
        })
    }

    /// Returns whether every requirement holds for the resource whose fields have these values.
    pub fn matches<'a>(&self, value: impl Fn(F) -> FieldValue<'a>) -> bool {
        self.0
            .iter()
            .all(|requirement| holds(requirement.operator, &requirement.wanted, value(requirement.field)))
    }
}

fn known_field<F: SelectorField>(key: &str) -> Result<F, Invalid> {
    F::ALL.iter().copied().find(|field| field.key() == key).ok_or_else(|| {
        let known: Vec<_> = F::ALL.iter().map(|field| field.key()).collect();
        let known = known.join(" ");
        let reason = format!("unknown or unsupported selector: '{key}'; supported selectors are: [{known}]");
        Invalid::new(FIELD, reason)
    })
}

fn check_operator<F: SelectorField>(field: F, operator: SelectorOperator) -> Result<(), Invalid> {
    let is_supported = match operator {
        SelectorOperator::Exists
        | SelectorOperator::DoesNotExist
        | SelectorOperator::Equals
        | SelectorOperator::NotEquals
        | SelectorOperator::In
        | SelectorOperator::NotIn => true,
        SelectorOperator::Contains | SelectorOperator::NotContains => !field.is_time(),
        SelectorOperator::Greater
        | SelectorOperator::GreaterOrEqual
        | SelectorOperator::Less
        | SelectorOperator::LessOrEqual => field.is_time(),
    };
    if is_supported {
        return Ok(());
    }
    Err(Invalid::new(FIELD, format!("the operator does not fit the field '{}'", field.key())))
}

fn read_time(text: &str) -> Result<Timestamp, Invalid> {
    time::read(text).ok_or_else(|| Invalid::new(FIELD, format!("'{text}' is no time of RFC 3339")))
}

fn holds(operator: SelectorOperator, wanted: &WantedValues, value: FieldValue<'_>) -> bool {
    if let Some(opposite) = operator.negated() {
        return !holds(opposite, wanted, value);
    }
    match (wanted, value) {
        (WantedValues::Texts(wanted), FieldValue::Texts(texts)) => {
            texts.into_iter().flatten().any(|text| text_holds(operator, wanted, text))
        }
        (WantedValues::Times(wanted), FieldValue::Time(time)) => time_holds(operator, wanted, time),
        (WantedValues::Texts(_), FieldValue::Time(_)) | (WantedValues::Times(_), FieldValue::Texts(_)) => {
            false
        }
    }
}

fn text_holds(operator: SelectorOperator, wanted: &[String], text: &str) -> bool {
    match operator {
        SelectorOperator::Exists => true,
        SelectorOperator::Equals | SelectorOperator::In => wanted.iter().any(|wanted| wanted == text),
        SelectorOperator::Contains => wanted.iter().any(|wanted| text.contains(wanted.as_str())),
        SelectorOperator::DoesNotExist
        | SelectorOperator::NotEquals
        | SelectorOperator::NotIn
        | SelectorOperator::NotContains
        | SelectorOperator::Greater
        | SelectorOperator::GreaterOrEqual
        | SelectorOperator::Less
        | SelectorOperator::LessOrEqual => false,
    }
}

fn time_holds(operator: SelectorOperator, wanted: &[Timestamp], time: Timestamp) -> bool {
    match operator {
        SelectorOperator::Exists => true,
        SelectorOperator::Equals | SelectorOperator::In => wanted.contains(&time),
        SelectorOperator::Greater => wanted.iter().any(|wanted| time > *wanted),
        SelectorOperator::GreaterOrEqual => wanted.iter().any(|wanted| time >= *wanted),
        SelectorOperator::Less => wanted.iter().any(|wanted| time < *wanted),
        SelectorOperator::LessOrEqual => wanted.iter().any(|wanted| time <= *wanted),
        SelectorOperator::DoesNotExist
        | SelectorOperator::NotEquals
        | SelectorOperator::NotIn
        | SelectorOperator::Contains
        | SelectorOperator::NotContains => false,
    }
}
