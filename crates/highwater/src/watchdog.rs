//! What systemd is told: that the service is ready, what it does, that it lives, that it stops. Silent where there is no
//! systemd.

use std::time::Duration;

use sd_notify::NotifyState;

pub(crate) struct Systemd {
    watchdog: Option<Duration>,
}

impl Systemd {
    pub(crate) fn from_env() -> Self {
        Systemd { watchdog: sd_notify::watchdog_enabled() }
    }

    pub(crate) fn ready(&self) {
        tell(NotifyState::Ready);
    }

    /// The start takes longer, and this is why; to be told again within half of `more`.
    pub(crate) fn starting(&self, text: &str, more: Duration) {
        self.status(text);
        tell(NotifyState::ExtendTimeoutUsec(u32::try_from(more.as_micros()).unwrap_or(u32::MAX)));
    }

    /// One line for `systemctl status`.
    pub(crate) fn status(&self, text: &str) {
        // A line break would end the message and begin another.
        tell(NotifyState::Status(&text.replace(['\n', '\r'], " ")));
    }

    pub(crate) fn stopping(&self) {
        tell(NotifyState::Stopping);
    }

    /// How often to beat: twice as often as systemd asks for.
    pub(crate) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }

    pub(crate) fn beat(&self) {
        if self.watchdog.is_some() {
            tell(NotifyState::Watchdog);
        }
    }
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "systemd was not told");
    }
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::net::UnixDatagram, process::Command};

    use super::*;

    const NAME: &str = "watchdog::tests::systemd_hears_of_the_whole_life_of_the_service";

    /// The environment of a process is set before it starts: the test runs itself once more as the service.
    #[test]
    fn systemd_hears_of_the_whole_life_of_the_service() {
        if env::var_os("HIGHWATER_TEST_SERVICE").is_some() {
            return live();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut service = Command::new(env::current_exe().unwrap());
        service.args(["--exact", NAME]).env("HIGHWATER_TEST_SERVICE", "1");
        service.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "30000000").env_remove("WATCHDOG_PID");
        assert!(service.output().unwrap().status.success());
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 256];
        let messages = std::iter::from_fn(|| {
            let length = socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned())
        });
        let messages: Vec<_> = messages.collect();
        let start = ["STATUS=waiting", "EXTEND_TIMEOUT_USEC=2000000", "READY=1"];
        assert_eq!(messages, [&start[..], &["STATUS=hn: 15 s READY=0", "WATCHDOG=1", "STOPPING=1"]].concat());
    }

    fn live() {
        let systemd = Systemd::from_env();
        systemd.starting("waiting", Duration::from_secs(2));
        systemd.ready();
        let seconds = systemd.watchdog_interval().unwrap().as_secs();
        systemd.status(&format!("hn: {seconds} s\nREADY=0"));
        systemd.beat();
        systemd.stopping();
    }
}
