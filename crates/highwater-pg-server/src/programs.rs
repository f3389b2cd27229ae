//! Where the server programs are, and as whom they are run: PostgreSQL refuses to run as root.

use std::{
    fmt, fs, io,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What Debian calls it.
pub const PACKAGE: &str = "postgresql";

const INSTALLED: &str = "/usr/lib/postgresql";

#[derive(Debug)]
pub struct Missing;

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no PostgreSQL server in {INSTALLED}: install Debian's `{PACKAGE}`")
    }
}

impl std::error::Error for Missing {}

/// The folder of programs of the latest version.
pub(crate) struct Programs {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl Programs {
    pub(crate) fn find() -> Result<Self, Missing> {
        let versions = fs::read_dir(INSTALLED).map_err(|_| Missing)?;
        let number = |path: &Path| path.file_name()?.to_str()?.parse::<f64>().ok();
        let mut folders: Vec<_> = versions.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.retain(|folder| folder.join("bin/initdb").exists() && number(folder).is_some());
        folders.sort_by(|a, b| number(a).partial_cmp(&number(b)).expect("numbers of versions compare"));
        let folder = folders.pop().ok_or(Missing)?.join("bin");
        Ok(Programs { folder, user: stand_in() })
    }

    /// With its output to a file: a server inherits it, and a pipe would never close.
    pub(crate) fn run(&self, program: &str, args: &[&str], log: &Path) -> io::Result<()> {
        let output = fs::File::create(log)?;
        let mut command = Command::new(self.folder.join(program));
        command.args(args).current_dir("/").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        command.env("LC_ALL", "C.UTF-8").env_remove("PGDATA").env_remove("PGOPTIONS");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        let status = command.status()?;
        if status.success() {
            return Ok(());
        }
        // How the program ended is told in any case; what it said only if it can be read.
        let said = fs::read_to_string(log).unwrap_or_default();
        Err(io::Error::other(format!("{program} ended with {status}: {said}")))
    }

    /// Makes a folder that the server's user owns.
    pub(crate) fn make_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        match self.user {
            Some((user, group)) => std::os::unix::fs::chown(folder, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}

/// Whom root steps down to; none for anybody else.
fn stand_in() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    // A system without this file has none of these accounts either: then it is the number that nobody has.
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    is_root.then(|| account(&accounts, "postgres").or_else(|| account(&accounts, "nobody")).unwrap_or((65534, 65534)))
}

fn account(accounts: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = accounts.lines().find(|line| line.split(':').next() == Some(name))?.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts = "postgresql:x:1:2::/:\npostgres:x:104:110:,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(account(accounts, "postgres"), Some((104, 110)));
        assert_eq!(account(accounts, "nobody"), None);
    }
}
