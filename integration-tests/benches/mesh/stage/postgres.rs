//! A PostgreSQL server for one run, started as the tests start theirs.

use std::process::Stdio;

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

/// Starts a server, prints its address and account, restarts it on request, and stops it at the end of input.
const SCRIPT: &str = "
    source integration-tests/tools/postgres.sh
    trap stop_postgres EXIT
    log=$(mktemp /tmp/reveille-bench-postgres.XXXXXX)
    start_postgres \"$log\" >&2 || exit
    rm -f \"$log\"
    echo \"$REVEILLE_TEST_POSTGRES\"
    while read -r _; do
        kill -QUIT \"$postgres_pid\" && wait \"$postgres_pid\"
        port=${REVEILLE_TEST_POSTGRES##*:}
        launch_postgres \"$(postgres_programs)\" \"${port%%/*}\" /dev/null && echo again
    done
";

/// A PostgreSQL server. It ends when this is dropped.
pub struct PostgresServer {
    url: String,
    admin: DatabaseConnection,
    server: tokio::sync::Mutex<ServerScript>,
}

struct ServerScript {
    script: Child,
    answers: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl PostgresServer {
    /// Starts a server.
    ///
    /// # Panics
    /// When no server can be started.
    pub async fn start() -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut script = Command::new("bash")
            .args(["-c", SCRIPT])
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash");
        let mut answers = BufReader::new(script.stdout.take().expect("piped")).lines();
        let url = answers.next_line().await.expect("readable").expect("a PostgreSQL server to start");
        let admin = Database::connect(url.as_str()).await.expect("a server to connect to");
        Self { url, admin, server: tokio::sync::Mutex::new(ServerScript { script, answers }) }
    }

    /// Address of a new database.
    ///
    /// # Panics
    /// When the server does not make one.
    pub async fn new_database(&self) -> String {
        test_databases::create_on(&self.url).await
    }

    /// Ends the server without warning and starts it again. Returns the time at which it took connections again.
    ///
    /// # Panics
    /// When it does not start again.
    pub async fn crash_and_recover(&self) -> std::time::Instant {
        let mut server = self.server.lock().await;
        let input = server.script.stdin.as_mut().expect("piped");
        input.write_all(b"again\n").await.expect("a script that reads");
        let answer = server.answers.next_line().await.expect("readable");
        assert_eq!(answer.as_deref(), Some("again"), "PostgreSQL does not come back");
        std::time::Instant::now()
    }

    /// Committed transactions so far in all databases, except the query itself.
    ///
    /// # Panics
    /// When the query fails.
    pub async fn commits(&self) -> u64 {
        let question =
            "SELECT sum(xact_commit)::bigint FROM pg_stat_database WHERE datname LIKE 'reveille_%'";
        let question = Statement::from_string(DbBackend::Postgres, question);
        let row = self.admin.query_one_raw(question).await.expect("an answer").expect("a row");
        let commits: Option<i64> = row.try_get_by_index(0).expect("a number");
        commits.unwrap_or_default().cast_unsigned()
    }
}
