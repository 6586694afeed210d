//! Hints for exploring a running mesh, with commands to copy.

use std::path::Path;

use chassis::Settings;

/// Returns commands about `session` and its member `node`. Every line works as printed.
pub(crate) fn around(settings: &Settings, session: &str, node: &str) -> String {
    let rest = format!("{}/apis/bos/v2", settings.gateway.url);
    let grpc = |url: &str| url.trim_start_matches("http://").to_owned();
    let registry = grpc(&settings.component_registry.url);
    let evaluator = grpc(&settings.status_evaluator.url);
    let sessions = &settings.session_manager.url;
    let data = Path::new(&settings.data_dir).display();
    let filter = &settings.log.filter;
    format!(
        "\
look around
  REST
    curl -s {rest}/sessions/{session}/status
    curl -s '{rest}/components?session={session}&status=failed'
    curl -s {rest}/components/{node}
    curl -s {rest}/options
  gRPC
    grpcurl -plaintext {registry} list
    grpcurl -plaintext -d '{{\"id\": \"{node}\"}}' {registry} reveille.component.v1.ComponentService/GetComponent
    grpcurl -plaintext -d '{{\"component_id\": \"{node}\"}}' {evaluator} reveille.evaluation.v1.EvaluationService/Explain
    buf curl --http2-prior-knowledge --protocol grpc -d '{{\"name\": \"{session}\"}}' \
{sessions}/reveille.session.v1.SessionService/GetSessionStatus
  data  {data}
  logs  this terminal's standard error, filter '{filter}'; --log info shows more
"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn lines_have_the_addresses_and_names_in_force() {
        let mut settings = Settings::default();
        settings.gateway.url = "http://127.0.0.1:7800".into();
        expect![[r#"
            look around
              REST
                curl -s http://127.0.0.1:7800/apis/bos/v2/sessions/first-light/status
                curl -s 'http://127.0.0.1:7800/apis/bos/v2/components?session=first-light&status=failed'
                curl -s http://127.0.0.1:7800/apis/bos/v2/components/x1000c0s0b0n0
                curl -s http://127.0.0.1:7800/apis/bos/v2/options
              gRPC
                grpcurl -plaintext 127.0.0.1:7701 list
                grpcurl -plaintext -d '{"id": "x1000c0s0b0n0"}' 127.0.0.1:7701 reveille.component.v1.ComponentService/GetComponent
                grpcurl -plaintext -d '{"component_id": "x1000c0s0b0n0"}' 127.0.0.1:7703 reveille.evaluation.v1.EvaluationService/Explain
                buf curl --http2-prior-knowledge --protocol grpc -d '{"name": "first-light"}' http://127.0.0.1:7702/reveille.session.v1.SessionService/GetSessionStatus
              data  reveille-data
              logs  this terminal's standard error, filter 'info,sea_orm_migration=warn,h2=warn'; --log info shows more
        "#]].assert_eq(&around(&settings, "first-light", "x1000c0s0b0n0"));
    }
}
