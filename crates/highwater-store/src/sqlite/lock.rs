//! One process works on a file: a lock beside it, held until the process ends, however it ends.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
};

use crate::{ErrorKind, Result, StoreError};

/// The operating system frees the lock with the file; the file itself stays, because removing it would race.
#[derive(Debug)]
pub(super) struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    pub(super) fn acquire(database: &Path) -> Result<ProcessLock> {
        let path = lock_path(database);
        let cannot = |error: std::io::Error| {
            StoreError::new(ErrorKind::CannotOpen, format!("cannot lock {}", path.display())).caused_by(error)
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(database, &mut file)),
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        write_pid(&mut file).map_err(cannot)?;
        Ok(ProcessLock { _file: file })
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = OsString::from(database.as_os_str());
    name.push(".lock");
    name.into()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn locked(database: &Path, file: &mut File) -> StoreError {
    let mut holder = String::new();
    let pid = match file.read_to_string(&mut holder) {
        Ok(_) if !holder.trim().is_empty() => holder.trim(),
        _ => "unknown",
    };
    let path = database.display();
    StoreError::new(ErrorKind::Locked, format!("{path} is used by process {pid}"))
}
