//! Where a password comes from that is not in the URL: `PGPASSWORD`, then the password file, as libpq reads it.

use std::{fs, path::PathBuf};

use tokio_postgres::{Config, config::Host};

use super::address::Surroundings;

pub(super) fn fill_in(config: &mut Config, variable: Surroundings<'_>) {
    if config.get_password().is_some() {
        return;
    }
    let password = variable("PGPASSWORD").filter(|password| !password.is_empty());
    if let Some(password) = password.or_else(|| from_file(config, variable)) {
        config.password(password);
    }
}

fn from_file(config: &Config, variable: Surroundings<'_>) -> Option<String> {
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
    let path = variable("PGPASSFILE").map(PathBuf::from).or_else(home)?;
    let lines = fs::read_to_string(&path).ok()?;
    if is_open_to_others(&path) {
        tracing::warn!(path = %path.display(), "password file is ignored: others may read it; chmod 600 helps");
        return None;
    }
    let ports = config.get_ports();
    let places = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let host = match host {
            Host::Tcp(name) => name.clone(),
            // libpq looks for the default socket under this name.
            Host::Unix(path) if path.as_os_str() == "/var/run/postgresql" => "localhost".into(),
            Host::Unix(path) => path.display().to_string(),
        };
        (host, ports.get(index).or(ports.first()).copied().unwrap_or(5432).to_string())
    });
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    places.into_iter().find_map(|(host, port)| find(&lines, [&host, &port, database, user]))
}

#[cfg(unix)]
fn is_open_to_others(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &std::path::Path) -> bool {
    false
}

/// The password of the first line whose host, port, database and user match.
fn find(lines: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = lines.lines().filter(|line| !line.starts_with('#')).map(fields);
    let matching = lines.filter(|fields| fields.len() >= 5);
    matching
        .filter(|fields| fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted))
        .map(|mut fields| fields.swap_remove(4))
        .next()
}

/// Split at colons; a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().expect("never empty").extend(characters.next()),
            _ => fields.last_mut().expect("never empty").push(character),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_first_line_that_fits_counts() {
        let lines = "# a comment\nother:5432:x:ann:no\ndb:*:x:ann:a\\:b\\\\c:d\n*:*:*:*:rest\n";
        assert_eq!(find(lines, ["db", "5432", "x", "ann"]).as_deref(), Some("a:b\\c:d"));
        assert_eq!(find(lines, ["db", "5432", "x", "bob"]).as_deref(), Some("rest"));
        assert_eq!(find("db:1:x:ann:p\nshort", ["db", "2", "x", "ann"]), None);
    }
}
