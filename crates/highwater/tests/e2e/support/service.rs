//! `highwater serve` as a child process, watched by its own metrics.

use std::{process::Command, time::Duration};

use super::{Done, Home, Running, Signal, http, until};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Service {
    running: Running,
    address: String,
}

impl Service {
    pub(crate) fn start(home: &Home) -> Service {
        Service::launch(home, home.command(&["serve", "--listen", "127.0.0.1:0"]))
    }

    pub(crate) fn launch(home: &Home, command: Command) -> Service {
        Service::of(home.launch(command))
    }

    /// One that was started already.
    pub(crate) fn of(mut running: Running) -> Service {
        let address = until("the address of the service", PATIENCE, || {
            assert!(!running.has_ended(), "the service ended: {}", running.err());
            let err = running.err();
            let (_, rest) = err.split_once("metrics and health are at http://")?;
            Some(rest.split_once('/')?.0.to_owned())
        });
        Service { running, address }
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = String::from_utf8(http::get(&self.address, "/metrics").unwrap()).unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    pub(crate) fn ask(&self, target: &str, headers: &str) -> (u16, String) {
        let (status, body) = http::ask(&self.address, target, headers).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    pub(crate) fn host(&self) -> String {
        format!("Host: {}\r\n", self.address)
    }

    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, patience: Duration, mut look: impl FnMut(&Service) -> bool) {
        until(what, patience, || {
            assert!(!self.running.has_ended(), "the service ended: {}", self.running.err());
            look(self).then_some(())
        });
    }

    pub(crate) fn wait_to_listen(&mut self) {
        self.wait_for("the feed", PATIENCE, |service| service.metric("realtime_listener_connected") == Some(1.0));
    }

    pub(crate) fn peak_memory(&self) -> Option<u64> {
        self.running.peak_memory()
    }

    pub(crate) fn err(&self) -> String {
        self.running.err()
    }

    pub(crate) fn kill(self) {
        self.running.kill();
    }

    /// Ended in order.
    pub(crate) fn stop(self) -> Done {
        self.running.signal(Signal::Terminate);
        self.running.wait_within(Duration::from_secs(10))
    }
}
