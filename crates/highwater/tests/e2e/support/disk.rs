//! A disk small enough to be filled.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A file system of 64 MiB in memory.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// None where mounting is not allowed.
    pub(crate) fn mount(path: PathBuf) -> Option<Disk> {
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Disk(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process killed by a failing test may not be gone yet.
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}
