//! Programs under measurement: run to their end, timed, their memory watched from outside.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};

use super::Rate;
use crate::{
    stopwatch::Stopwatch,
    workspace::{run, shown},
};

/// Short against a run of seconds, long against one look at `/proc`.
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Finished {
    pub(super) seconds: f64,
    /// Of all threads; none without `/proc`.
    pub(super) cpu_seconds: Option<f64>,
    pub(super) peak_rss_mb: Option<f64>,
    pub(super) output: String,
}

/// What other programs wrote and removed is on disk then: else the next that stores something waits for it too, with
/// every transaction.
pub(super) fn settle() -> anyhow::Result<()> {
    run(&mut Command::new("sync"))
}

/// Output goes through a file: nobody has to empty a pipe while we watch.
pub(super) fn finish(command: &mut Command, scratch: &Path) -> anyhow::Result<Finished> {
    let output = scratch.join("output");
    let file = File::create(&output)?;
    settle()?;
    let watch = Stopwatch::start();
    let mut child = command.stdout(file).spawn().with_context(|| shown(command))?;
    let process = child.id();
    let (over, ended) = mpsc::channel::<()>();
    let (status, seconds, seen) = thread::scope(|scope| {
        let watching = scope.spawn(move || look_until(process, &ended));
        let status = child.wait();
        let seconds = watch.seconds();
        drop(over);
        (status, seconds, watching.join().expect("looking does not panic"))
    });
    let status = status?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    let Seen { cpu_seconds, peak_rss_mb } = seen;
    Ok(Finished { seconds, cpu_seconds, peak_rss_mb, output: fs::read_to_string(&output)? })
}

#[derive(Default)]
struct Seen {
    cpu_seconds: Option<f64>,
    peak_rss_mb: Option<f64>,
}

/// The kernel keeps the peak and the sum, so the last look before the end is the one that counts.
fn look_until(process: u32, ended: &mpsc::Receiver<()>) -> Seen {
    let mut seen = Seen::default();
    loop {
        seen.peak_rss_mb = peak_rss(process).or(seen.peak_rss_mb);
        seen.cpu_seconds = cpu(process).or(seen.cpu_seconds);
        if ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            return seen;
        }
    }
}

/// A program that runs beside others, its output thrown away.
pub(super) fn start(command: &mut Command) -> anyhow::Result<(Child, String)> {
    let child = command.stdout(Stdio::null()).spawn().with_context(|| shown(command))?;
    Ok((child, shown(command)))
}

pub(super) fn ended((mut child, name): (Child, String)) -> anyhow::Result<()> {
    let status = child.wait()?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

/// For programs that print their own rate as one line of JSON.
pub(super) fn report(command: &mut Command, scratch: &Path) -> anyhow::Result<Rate> {
    let finished = finish(command, scratch)?;
    let line = finished.output.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("output of {}", shown(command)))
}

/// In MB; none without `/proc`, and for a process that has ended.
fn peak_rss(process: u32) -> Option<f64> {
    parse_peak(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn parse_peak(status: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// In seconds; none without `/proc`, and for a process that has ended.
fn cpu(process: u32) -> Option<f64> {
    parse_cpu(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The name in the second field may hold spaces, so fields are counted from behind it.
fn parse_cpu(stat: &str) -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: f64 = fields.nth(11)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{parse_cpu, parse_peak};

    #[test]
    fn processor_time_is_that_of_user_and_kernel() {
        assert_eq!(parse_cpu("7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20"), Some(2.0));
        assert_eq!(parse_cpu("7 (a) Z 1"), None);
    }

    #[test]
    fn the_peak_is_read_from_the_status_of_a_process() {
        assert_eq!(parse_peak("Name:\ta\nVmHWM:\t   2048 kB\nVmRSS:\t 1024 kB\n"), Some(2.0));
        assert_eq!(parse_peak("Name:\ta\nState:\tZ (zombie)\n"), None);
    }
}
