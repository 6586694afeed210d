//! Label selectors: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, joined by commas.

use super::super::failure::ApiFailure;

/// Conditions on labels, all of which have to hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LabelSelector(Vec<LabelCondition>);

#[derive(Debug, Clone, PartialEq)]
struct LabelCondition {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl LabelSelector {
    /// Reads a selector; an empty one selects everything.
    ///
    /// # Errors
    /// When the text is no selector.
    pub(crate) fn read(text: &str) -> Result<Self, ApiFailure> {
        let terms = terms(text).into_iter().filter(|term| !term.trim().is_empty());
        let conditions: Option<Vec<_>> = terms.map(|term| condition(term.trim())).collect();
        conditions.map(Self).ok_or_else(|| {
            ApiFailure::bad_request(format!("unable to parse requirement: '{text}' is no label selector"))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the object whose labels `label` returns is selected.
    pub(crate) fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|LabelCondition { key, test }| {
            let value = label(key);
            let is_in = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
            match test {
                LabelTest::In(values) => is_in(values),
                LabelTest::NotIn(values) => !is_in(values),
                LabelTest::Exists => value.is_some(),
                LabelTest::Absent => value.is_none(),
            }
        })
    }
}

/// Splits at the commas outside parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let split = text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    split.collect()
}

fn condition(term: &str) -> Option<LabelCondition> {
    let (key, test) = parts(term)?;
    let is_word = !key.is_empty() && !key.contains([' ', '!', '=', '(', ')', '<', '>']);
    is_word.then(|| LabelCondition { key: key.to_owned(), test })
}

fn parts(term: &str) -> Option<(&str, LabelTest)> {
    if let Some(key) = term.strip_prefix('!') {
        return Some((key.trim(), LabelTest::Absent));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some((key.trim(), LabelTest::NotIn(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some((key.trim(), LabelTest::In(vec![value.trim().to_owned()])));
    }
    let Some((head, list)) = term.split_once('(') else { return Some((term, LabelTest::Exists)) };
    let values = list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    match head.trim().rsplit_once(' ')? {
        (key, "in") => Some((key.trim(), LabelTest::In(values))),
        (key, "notin") => Some((key.trim(), LabelTest::NotIn(values))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;

    #[test]
    fn labels_select_as_kubernetes_does() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("x/b".to_owned(), "2".to_owned())]);
        let texts = [
            "",
            "a=1",
            "a==1",
            "a = 1",
            "a!=1",
            "c!=1",
            "a in (1,2)",
            "a in (2)",
            "a notin (1)",
            "c notin (1)",
            "a",
            "!a",
            "!c",
            "x/b=2,a=1",
            "a=1,b",
            "a in (1,2),x/b in (2)",
            "a in 1",
            "a b",
            "a in (1",
        ];
        let rows = texts.map(|text| match LabelSelector::read(text) {
            Ok(selector) => {
                format!("{text} -> {}\n", selector.matches(|name| labels.get(name).map(String::as_str)))
            }
            Err(failure) => format!("{text} -> {}\n", failure.message),
        });
        expect![[r#"
             -> true
            a=1 -> true
            a==1 -> true
            a = 1 -> true
            a!=1 -> false
            c!=1 -> true
            a in (1,2) -> true
            a in (2) -> false
            a notin (1) -> false
            c notin (1) -> true
            a -> true
            !a -> false
            !c -> true
            x/b=2,a=1 -> true
            a=1,b -> false
            a in (1,2),x/b in (2) -> true
            a in 1 -> unable to parse requirement: 'a in 1' is no label selector
            a b -> unable to parse requirement: 'a b' is no label selector
            a in (1 -> unable to parse requirement: 'a in (1' is no label selector
        "#]]
        .assert_eq(&rows.concat());
    }
}
