//! Tasks of BMCs: actions that take long (DSP0266).

use http::{HeaderMap, StatusCode, header::LOCATION};
use serde_json::Value;

use crate::system;

/// Progress of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskProgress {
    /// The BMC works on the task.
    Running,
    /// The task goes on once the system is reset.
    NeedsReset,
    /// The task has ended well.
    Done,
    /// The task has ended otherwise, with the words of the BMC.
    Failed(String),
    /// The BMC has no such task, or not any more.
    Forgotten,
}

impl TaskProgress {
    /// Reads a task, or the answer of the monitor of a task, which answers 202 as long as the task runs.
    pub(crate) fn read(status: StatusCode, body: &[u8]) -> Self {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        match document["TaskState"].as_str() {
            Some("Completed") if is_in_order(&document) => Self::Done,
            Some("Completed" | "Exception" | "Killed" | "Cancelled" | "Interrupted") => {
                Self::Failed(words(&document))
            }
            Some("Pending" | "Suspended") => Self::NeedsReset,
            Some(_) => Self::Running,
            None if status == StatusCode::ACCEPTED => Self::Running,
            None => Self::Done,
        }
    }
}

fn is_in_order(task: &Value) -> bool {
    matches!(task["TaskStatus"].as_str(), None | Some("OK" | "Warning"))
}

/// Returns the messages of a task, or its state where it has none.
fn words(task: &Value) -> String {
    let messages = task["Messages"].as_array().into_iter().flatten();
    let texts: Vec<_> = messages.filter_map(|message| message["Message"].as_str()).collect();
    match texts.is_empty() {
        true => format!("the task ended in the state '{}'", task["TaskState"].as_str().unwrap_or_default()),
        false => texts.join(" "),
    }
}

/// Returns the path of the task that an answer names. The task itself says more than its monitor, so it comes first.
pub(crate) fn path(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let is_task = document["@odata.type"].as_str().is_some_and(|kind| kind.starts_with("#Task."));
    let described = system::link(&document).filter(|_| is_task);
    described.or_else(|| system::path(headers.get(LOCATION)?.to_str().ok()?))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn states_of_tasks_are_told_apart() {
        let failed = |text: &str| TaskProgress::Failed(text.to_owned());
        for (status, task, expected) in [
            (200, json!({"TaskState": "Running"}), TaskProgress::Running),
            (200, json!({"TaskState": "Downloading"}), TaskProgress::Running),
            (200, json!({"TaskState": "Pending"}), TaskProgress::NeedsReset),
            (200, json!({"TaskState": "Completed"}), TaskProgress::Done),
            (200, json!({"TaskState": "Completed", "TaskStatus": "Warning"}), TaskProgress::Done),
            (
                200,
                json!({"TaskState": "Completed", "TaskStatus": "Critical"}),
                failed("the task ended in the state 'Completed'"),
            ),
            (
                200,
                json!({"TaskState": "Exception", "Messages": [{"Message": "Wrong image."}, {"Message": "Bye."}]}),
                failed("Wrong image. Bye."),
            ),
            (202, Value::Null, TaskProgress::Running),
            (204, Value::Null, TaskProgress::Done),
        ] {
            let body = if task.is_null() { String::new() } else { task.to_string() };
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(TaskProgress::read(status, body.as_bytes()), expected, "{status} {task}");
        }
    }

    #[test]
    fn an_answer_names_its_task_or_the_monitor_of_it() {
        let mut headers = HeaderMap::new();
        assert_eq!(path(&headers, b""), None);
        headers
            .insert(LOCATION, HeaderValue::from_static("https://bmc/redfish/v1/TaskService/TaskMonitors/1"));
        assert_eq!(path(&headers, b"").as_deref(), Some("/redfish/v1/TaskService/TaskMonitors/1"));
        let task =
            json!({"@odata.type": "#Task.v1_4_3.Task", "@odata.id": "/redfish/v1/TaskService/Tasks/1"});
        let named = path(&headers, task.to_string().as_bytes());
        assert_eq!(named.as_deref(), Some("/redfish/v1/TaskService/Tasks/1"));
    }
}
