//! How soon memory that was freed goes back to the system. There are two allocators, ours and that of the C libraries
//! (SQLite, zstd); left alone they keep more than a hundred megabytes of what large mail took up.

use crate::config::SourceConfig;

/// Before anything else is begun: the process may start once more. Only mail is large.
pub(crate) fn set_up(sources: &[&SourceConfig]) {
    if sources.iter().any(|source| source.gmail.is_some()) {
        give_back_soon();
    }
}

/// Both are told in the environment, and read it only when a process starts: so it does that again, in its own place.
#[cfg(target_os = "linux")]
fn give_back_soon() {
    use std::{env, os::unix::process::CommandExt, process::Command};

    let missing: Vec<_> = SETTINGS.into_iter().filter(|(name, _)| env::var_os(name).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut args = env::args_os();
        let name = args.next().unwrap_or_else(|| program.clone().into());
        let error = Command::new(program).arg0(name).args(args).envs(missing).exec();
        tracing::debug!(%error, "goes on with more memory than it would need");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_back_soon() {}

/// Blocks of a megabyte and more go back at once, and so do pages.
#[cfg(target_os = "linux")]
const SETTINGS: [(&str, &str); 2] = [("MALLOC_MMAP_THRESHOLD_", "1048576"), ("MIMALLOC_PURGE_DELAY", "0")];
