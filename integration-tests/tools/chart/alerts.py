"""Series with which each alert fires, and with which it does not, for the unit tests of promtool."""

# Rows of each alert: (whether it fires, series with their values by minute). A name is followed by its labels;
# `job` and `namespace` are put in where they are missing.
ALERTS = {
    "ReveillePartDown": [
        (True, {"up{job=reveille-component-registry}": "0x200", "up{job=reveille-gateway}": "1x200"}),
        (True, {}),
        (False, {"up{job=EACH}": "1x200"}),
        (False, {"up{job=EACH,instance=a}": "1x200", "up{job=EACH,instance=b}": "0x200"}),
    ],
    "ReveilleReplicaDown": [
        (True, {"up{instance=b}": "0x200"}),
        (False, {"up{instance=b}": "1x200"}),
        (False, {"up{instance=b,job=other}": "0x200"}),
    ],
    "ReveilleRoleVacant": [
        (
            True,
            {
                "reveille_role_held{part=session-manager,pod=a}": "0x200",
                "reveille_role_held{part=session-manager,pod=b}": "0x200",
            },
        ),
        (
            False,
            {
                "reveille_role_held{part=session-manager,pod=a}": "0x200",
                "reveille_role_held{part=session-manager,pod=b}": "1x200",
            },
        ),
    ],
    "ReveilleRoleHeldTwice": [
        (
            True,
            {
                "reveille_role_held{part=session-manager,pod=a}": "1x200",
                "reveille_role_held{part=session-manager,pod=b}": "1x200",
            },
        ),
        (
            False,
            {
                "reveille_role_held{part=session-manager,pod=a}": "1x200",
                "reveille_role_held{part=power-controller,pod=a}": "1x200",
            },
        ),
    ],
    "ReveilleRoleMoves": [
        (True, {"reveille_role_changes_total{part=session-manager,way=in}": "0+1x200"}),
        (False, {"reveille_role_changes_total{part=session-manager,way=in}": "1x200"}),
    ],
    "ReveilleUpstreamFails": [
        (True, {"reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=unreachable}": "0+5x200"}),
        (
            True,
            {
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=held}": "0+5x200",
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=ok}": "7x200",
            },
        ),
        (
            False,
            {
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=unreachable}": "0+5x200",
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=ok}": "0+1x200",
            },
        ),
        (False, {"reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=refused}": "0+5x200"}),
    ],
    "ReveilleUpstreamDenies": [
        (True, {"reveille_upstream_calls_total{peer=BSS,operation=write,outcome=denied}": "0+1x200"}),
        (False, {"reveille_upstream_calls_total{peer=BSS,operation=write,outcome=denied}": "3x200"}),
    ],
    "ReveilleUpstreamRefuses": [
        (
            True,
            {
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=refused}": "0+2x200",
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=ok}": "0+8x200",
            },
        ),
        (
            False,
            {
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=refused}": "0+1x200",
                "reveille_upstream_calls_total{peer=PCS,operation=transition,outcome=ok}": "0+99x200",
            },
        ),
    ],
    "ReveilleUpstreamSlow": [
        (
            True,
            {
                "reveille_upstream_call_seconds_bucket{peer=CFS,operation=list,le=5}": "0x200",
                "reveille_upstream_call_seconds_bucket{peer=CFS,operation=list,le=20}": "0+9x200",
                "reveille_upstream_call_seconds_bucket{peer=CFS,operation=list,le=+Inf}": "0+9x200",
            },
        ),
        (
            False,
            {
                "reveille_upstream_call_seconds_bucket{peer=CFS,operation=list,le=5}": "0+9x200",
                "reveille_upstream_call_seconds_bucket{peer=CFS,operation=list,le=+Inf}": "0+9x200",
            },
        ),
    ],
    "ReveilleCallsRefused": [
        (True, {"reveille_calls_refused_total{class=list}": "0+1x200"}),
        (False, {"reveille_calls_refused_total{class=list}": "0x100 5x100"}),
    ],
    "ReveilleConnectionsRefused": [
        (True, {"reveille_connections_refused_total": "0+1x200"}),
        (False, {"reveille_connections_refused_total": "9x200"}),
    ],
    "ReveilleHandshakesRefused": [
        (True, {"reveille_tls_handshakes_refused_total": "0+60x200"}),
        (False, {"reveille_tls_handshakes_refused_total": "0+1x200"}),
    ],
    "ReveilleCallsDenied": [
        (True, {"reveille_calls_denied_total{caller=insight,method=ReportStatuses}": "0+1x200"}),
        (False, {"reveille_calls_denied_total{caller=insight,method=ReportStatuses}": "1x200"}),
    ],
    "ReveilleStreamsClosed": [
        (True, {"reveille_streams_closed_total": "0+1x200"}),
        (False, {"reveille_streams_closed_total": "1x200"}),
    ],
    "ReveilleStreamBudgetLow": [
        (True, {"reveille_stream_bytes": "120000000x200"}),
        (False, {"reveille_stream_bytes": "90000000x200"}),
    ],
    "ReveilleRowsUnreadable": [
        (True, {"reveille_ledger_unreadable_rows{kind=component}": "1x200"}),
        (False, {"reveille_ledger_unreadable_rows{kind=component}": "0x200"}),
    ],
    "ReveilleDatabaseBusy": [
        (True, {"reveille_ledger_retries_total{kind=component}": "0+120x200"}),
        (False, {"reveille_ledger_retries_total{kind=component}": "0+6x200"}),
    ],
    "ReveilleHostsFail": [
        (True, {"reveille_host_errors_total{kind=inspection_error}": "0+1x200"}),
        (False, {"reveille_host_errors_total{kind=inspection_error}": "5x200"}),
    ],
    "ReveilleHostsWait": [
        (True, {"reveille_hosts_delayed_total{state=provisioning}": "0+1x200"}),
        (False, {"reveille_hosts_delayed_total{state=provisioning}": "0x100 1x100"}),
    ],
    "ReveilleHostLogins": [
        (True, {"reveille_host_notices_total{notice=credentials_invalid}": "0+1x200"}),
        (False, {"reveille_host_notices_total{notice=unmanaged}": "0+1x200"}),
    ],
}


def unit_tests(rules, jobs):
    """The file of promtool's unit tests, for the rules in a file of that name and parts with these jobs."""
    tests = []
    for alert, rows in ALERTS.items():
        for fires, series in rows:
            expected = [{"labels": "{}", "value": 1}] if fires else []
            firing = f'count(count by (alertname) (ALERTS{{alertname="{alert}",alertstate="firing"}}))'
            tests.append(
                {
                    "name": f"{alert} {'fires' if fires else 'does not fire'} with {', '.join(series) or 'nothing'}",
                    "interval": "1m",
                    "input_series": [one for name, values in series.items() for one in expand(name, values, jobs)],
                    "promql_expr_test": [{"expr": firing, "eval_time": "190m", "exp_samples": expected}],
                }
            )
    # Every five minutes rather than every minute: all rules are evaluated at each moment of each test.
    return {"rule_files": [rules], "evaluation_interval": "5m", "tests": tests}


def expand(name, values, jobs):
    """Series of one row, in the words of Prometheus; one of each job where a row says EACH."""
    metric, _, labels = name.rstrip("}").partition("{")
    given = {"namespace": "fleet", "job": jobs[0]} | dict(label.split("=") for label in labels.split(",") if label)
    for job in jobs if given["job"] == "EACH" else [given["job"]]:
        text = ",".join(f'{label}="{value}"' for label, value in (given | {"job": job}).items())
        yield {"series": f"{metric}{{{text}}}", "values": values}
