//! The binary as a process with a bound on its life.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use serde_json::Value as Json;

use super::clock::{Deadline, until};

/// No command of these tests takes nearly as long.
const LIFE_MAX: Duration = Duration::from_secs(150);

pub(crate) fn program() -> PathBuf {
    std::env::var_os("HIGHWATER_BIN").map_or_else(|| env!("CARGO_BIN_EXE_highwater").into(), PathBuf::from)
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
    /// Nothing runs until `Continue`.
    Stop,
    Continue,
}

/// A process at work; killed when dropped. It writes to files, so that no full pipe can hold it up.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Running {
    pub(super) fn start(mut command: Command, logs: &Path) -> Running {
        let (out, err) = (logs.with_extension("out"), logs.with_extension("err"));
        command.stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Running { child, out, err }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The most memory that was resident so far, in bytes. None for a process that has ended.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = value.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes << 10)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Interrupt => "-INT",
            Signal::Terminate => "-TERM",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
        };
        let sent = Command::new("kill").args([name, &self.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill {name} failed");
    }

    /// SIGKILL: no chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    pub(crate) fn wait(self) -> Done {
        self.wait_within(LIFE_MAX)
    }

    pub(crate) fn wait_within(mut self, patience: Duration) -> Done {
        let deadline = Deadline::after(patience);
        let status = until("the end of a process", patience * 2, || {
            assert!(!deadline.has_passed(), "after {patience:?} process {} still says {:?}", self.id(), self.err());
            self.child.try_wait().unwrap()
        });
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Done { status, out: read(&self.out), err: read(&self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Done {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Done {
        assert_eq!(self.status.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard output, which must be one JSON document and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {:?}", self.out))
    }

    #[track_caller]
    pub(crate) fn complains(self, parts: &[&str]) -> Done {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
        self
    }
}
