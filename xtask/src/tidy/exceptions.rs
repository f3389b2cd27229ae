//! The exceptions to the rules, each with its reason. One that covers nothing is itself a finding.

use super::{Finding, Rule};

pub(super) struct Exception {
    pub(super) rule: Rule,
    pub(super) path: &'static str,
    #[expect(dead_code, reason = "for the reader of the table")]
    pub(super) reason: &'static str,
}

#[rustfmt::skip]
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception { rule: Rule::Length, path: "Cargo.lock", reason: "written by cargo" },
    Exception { rule: Rule::Length, path: "fuzz/Cargo.lock", reason: "written by cargo" },
    Exception { rule: Rule::WorkspaceDependency, path: "fuzz/Cargo.toml", reason: "it is a workspace of its own" },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater-sources/src/transport/h2.rs",
        reason: "requests share an HTTP/2 connection, so none of them can drive it; the transport ends the drivers",
    },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater-sources/src/decoding/decoder.rs",
        reason: "a thread that runs what is handed to it; all of that is awaited, and its end follows that of the source",
    },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater-sim/src/server.rs",
        reason: "a task for each connection to a simulator; the server waits for all of them",
    },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater-sim/src/server/h2.rs",
        reason: "a task for each request of an HTTP/2 connection; the server waits for all of them",
    },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater-web/src/server.rs",
        reason: "a task for each connection; the server waits for all of them",
    },
    Exception {
        rule: Rule::Spawn,
        path: "crates/highwater/src/notify.rs",
        reason: "alerts are told beside the service, which never waits for that; the notifier waits for its end",
    },
];

impl Exception {
    pub(super) fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.path == finding.path
    }
}

pub(super) fn unused(exceptions: &[Exception], excused: &[Finding]) -> Vec<Finding> {
    let idle = exceptions.iter().filter(|exception| !excused.iter().any(|finding| exception.covers(finding)));
    idle.map(|exception| Finding {
        rule: Rule::Exception,
        path: exception.path.into(),
        line: None,
        text: format!("`{}` is not needed here any more", exception.rule.as_str()),
    })
    .collect()
}
