//! One server: made, started, stopped, started again, deleted.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{port, programs::Programs};

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: for measurements.
    Full,
    /// The end of the server at most: for tests.
    Off,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Breaks connections off, and leaves sound files.
    Fast,
    /// As in a crash: the next start recovers.
    Immediate,
}

pub struct Server {
    programs: Programs,
    folder: PathBuf,
    port: u16,
}

pub const USER: &str = "highwater";

/// To start a server that is new, each time on another port.
const ATTEMPTS: u32 = 3;

impl Server {
    pub fn start(durability: Durability) -> Result<Server, Box<dyn Error + Send + Sync>> {
        Server::start_with(durability, "")
    }

    /// With further lines for `postgresql.conf`.
    pub fn start_with(durability: Durability, settings: &str) -> Result<Server, Box<dyn Error + Send + Sync>> {
        let programs = Programs::find()?;
        let mut server = Server { programs, folder: fresh_folder(), port: port::next()? };
        server.programs.make_folder(&server.folder)?;
        server.create(durability, settings)?;
        let mut started = server.resume();
        for _ in 1..ATTEMPTS {
            if started.as_ref().is_err_and(is_about_port) {
                // Somebody was quicker to take it.
                server.port = port::next()?;
                started = server.resume();
            }
        }
        started?;
        Ok(server)
    }

    /// For a server that no `Drop` will ever see, as in a static: a shell stops it when this process is gone.
    pub(crate) fn start_orphan(durability: Durability) -> Server {
        let server = Server::start(durability).expect("a PostgreSQL server for the tests");
        server.leave_to_a_guard().expect("a guard for the server");
        server
    }

    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its Unix socket is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where its files are: certificates and `pg_hba.conf` go here, to be seen at the next start.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn stop(&self, stop: Stop) -> io::Result<()> {
        let mode = match stop {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.control(&["-m", mode, "-w", "stop"])
    }

    pub fn resume(&self) -> io::Result<()> {
        let log = self.folder.join("log");
        let options = format!("-p {} -h 127.0.0.1 -k {}", self.port, self.folder.display());
        let started = self.control(&["-w", "-t", "60", "-l", &log.to_string_lossy(), "-o", &options, "start"]);
        started.map_err(|error| {
            // What the program said is told in any case; the server's own words only if they can be read.
            let said = fs::read_to_string(&log).unwrap_or_default();
            io::Error::other(format!("{error}{said}"))
        })
    }

    fn create(&self, durability: Durability, settings: &str) -> io::Result<()> {
        let data = self.data();
        let log = self.folder.join("initdb.log");
        let folder = data.to_string_lossy();
        let args = ["-D", &folder, "-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8"];
        self.programs.run("initdb", &[&args[..], &["--no-sync"]].concat(), &log)?;
        let speed = match durability {
            Durability::Full => "",
            Durability::Off => "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n",
        };
        let path = data.join("postgresql.conf");
        let common = "max_connections = 200\nshared_buffers = 128MB\nlog_min_messages = fatal\n";
        let text = fs::read_to_string(&path)? + common + speed + settings + "\n";
        fs::write(&path, text)
    }

    fn control(&self, args: &[&str]) -> io::Result<()> {
        let data = self.data().to_string_lossy().into_owned();
        let args = [&["-D", data.as_str()], args].concat();
        self.programs.run("pg_ctl", &args, &self.folder.join("pg_ctl.log"))
    }

    /// A child whose standard input closes when we end, however we end.
    fn leave_to_a_guard(&self) -> io::Result<()> {
        let script = "cat >/dev/null; kill -QUIT \"$(head -1 \"$1/data/postmaster.pid\")\"; sleep 0.2; rm -rf \"$1\"";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "guard"]).arg(&self.folder).current_dir("/");
        let guard = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // Leaked on purpose: its pipe must stay open for as long as this process lives.
        std::mem::forget(guard);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be stopped already, and nobody misses the files of a test.
        drop(self.stop(Stop::Immediate));
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn is_about_port(error: &io::Error) -> bool {
    error.to_string().contains("could not create any TCP/IP sockets")
}

/// Short: the path of a Unix socket has room for a hundred bytes.
fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("highwater-pg-{}-{number}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_stops_resumes_and_leaves_nothing() {
        let server = Server::start(Durability::Off).unwrap();
        let folder = server.folder().to_owned();
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_ok());
        server.stop(Stop::Immediate).unwrap();
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
        server.resume().unwrap();
        assert!(folder.exists());
        drop(server);
        assert!(!folder.exists());
    }

    #[test]
    fn a_port_that_is_taken_is_told_from_other_reasons() {
        let server = Server::start(Durability::Off).unwrap();
        server.stop(Stop::Fast).unwrap();
        let _taken = std::net::TcpListener::bind(("127.0.0.1", server.port())).unwrap();
        assert!(is_about_port(&server.resume().unwrap_err()));
        fs::remove_file(server.data().join("PG_VERSION")).unwrap();
        fs::remove_file(server.folder().join("log")).unwrap();
        assert!(!is_about_port(&server.resume().unwrap_err()));
    }
}
