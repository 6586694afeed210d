//! Label selectors, in the syntax of Kubernetes.

use crate::{
    core::invalid::Invalid,
    device::{
        label,
        record::DeviceLabels,
        selector::syntax::{self, RawRequirement, SelectorOperator},
    },
};

/// Field of a refusal.
const FIELD: &str = "labelSelector";

/// Requirements on labels, all of which must hold. Without any, every resource matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<RawRequirement>);

impl LabelSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// When the text is no selector, or when a key or a value can be on no label.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let requirements = syntax::parse(FIELD, text)?;
        requirements.iter().try_for_each(check)?;
        Ok(Self(requirements))
    }

    /// Returns whether every requirement holds. A missing label differs from every value.
    pub fn matches(&self, labels: &DeviceLabels) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str()).map(|value| &**value);
            holds(requirement, requirement.operator, value)
        })
    }

    /// Returns conditions for an index of labels: resources that match have at least one text of each, which is a label as
    /// `key=value`, or its key alone. Requirements that an index does not help with are left out.
    pub fn index_conditions(&self) -> Vec<Vec<String>> {
        self.0.iter().filter_map(index_condition).collect()
    }
}

fn index_condition(RawRequirement { key, operator, values }: &RawRequirement) -> Option<Vec<String>> {
    match operator {
        SelectorOperator::Exists => Some(vec![key.clone()]),
        SelectorOperator::Equals | SelectorOperator::In => {
            Some(values.iter().map(|value| format!("{key}={value}")).collect())
        }
        SelectorOperator::DoesNotExist
        | SelectorOperator::NotEquals
        | SelectorOperator::NotIn
        | SelectorOperator::Contains
        | SelectorOperator::NotContains
        | SelectorOperator::Greater
        | SelectorOperator::GreaterOrEqual
        | SelectorOperator::Less
        | SelectorOperator::LessOrEqual => None,
    }
}

fn holds(requirement: &RawRequirement, operator: SelectorOperator, value: Option<&str>) -> bool {
    if let Some(opposite) = operator.negated() {
        return !holds(requirement, opposite, value);
    }
    value.is_some_and(|value| {
        operator == SelectorOperator::Exists || requirement.values.iter().any(|wanted| wanted == value)
    })
}

fn check(requirement: &RawRequirement) -> Result<(), Invalid> {
    let key = &requirement.key;
    if !is_supported(requirement.operator) {
        return Err(Invalid::new(FIELD, format!("labels have no order and no parts, as '{key}' would need")));
    }
    label::check_key(FIELD, key)?;
    requirement.values.iter().try_for_each(|value| label::check_value(FIELD, value))
}

fn is_supported(operator: SelectorOperator) -> bool {
    match operator {
        SelectorOperator::Exists
        | SelectorOperator::DoesNotExist
        | SelectorOperator::Equals
        | SelectorOperator::NotEquals
        | SelectorOperator::In
        | SelectorOperator::NotIn => true,
        SelectorOperator::Contains
        | SelectorOperator::NotContains
        | SelectorOperator::Greater
        | SelectorOperator::GreaterOrEqual
        | SelectorOperator::Less
        | SelectorOperator::LessOrEqual => false,
    }
}
