//! Doors that do not open: each says in one sentence what is wrong, and never the password.

use std::{fs, time::Duration};

use highwater_pg_server::{Durability, Server, USER};

use crate::support::{FAST, Home, Reply, Schema, Server as Remote, Session, item, until};

const PASSWORD: &str = "open-sesame";

/// Of 20 items.
fn remote() -> Remote {
    Remote::start(|asked, _| Some(Reply::ok(asked.map_or_else(|| "20".to_owned(), item))))
}

/// One sentence and one hint, and nothing that should stay secret.
fn refused(home: &Home, store: &str, code: i32, parts: &[&str]) {
    for args in [&["sync", "hn"][..], &["status"], &["verify", "--store"], &["sync", "hn", "-v"]] {
        let done = home.run(&[args, &["--store", store]].concat()).exits(code).complains(parts);
        let lines: Vec<_> = done.err.lines().collect();
        assert!(
            matches!(lines[..], [error, hint] if error.starts_with("error: ") && hint.starts_with("hint: ")),
            "{lines:?}"
        );
        assert!(!done.err.contains("sesame") && done.out.is_empty(), "{done:?}");
    }
}

#[test]
fn each_closed_door_says_what_it_is() {
    let server = Server::start(Durability::Off).unwrap();
    let admin = Session::connect(&server.url()).unwrap();
    admin.run(&format!("CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'"));
    admin.run("CREATE SCHEMA taken");
    let rules = server.data().join("pg_hba.conf");
    let trusting = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, format!("host all ann all scram-sha-256\n{trusting}")).unwrap();
    admin.run("SELECT pg_reload_conf()");

    let home = Home::new("http://127.0.0.1:1", FAST);
    let at = format!("127.0.0.1:{}", server.port());
    let wrong_url = format!("postgres://ann:{PASSWORD}-not@{at}/postgres");
    until("the rules", Duration::from_secs(10), || Session::connect(&wrong_url).err());
    let wrong = "password authentication failed for user \"ann\"";
    refused(&home, &wrong_url, 4, &[wrong, "PGPASSWORD"]);
    refused(&home, &format!("postgres://ann@{at}/postgres"), 4, &["asks for a password", "PGPASSWORD"]);
    let unknown = "database \"nowhere\" does not exist";
    refused(&home, &format!("postgres://{USER}@{at}/nowhere"), 2, &[unknown, "store.url"]);
    let url = format!("postgres://ann:{PASSWORD}@{at}/postgres");
    refused(&home, &format!("{url}?schema=taken"), 2, &["permission denied for schema taken"]);
    let make = home.run(&["sync", "hn", "--store", &format!("{url}?schema=new")]).exits(2);
    make.complains(&["permission denied for database postgres", "hint: "]);
    refused(&home, &format!("postgres://ann:{PASSWORD}@127.0.0.1:1/postgres"), 2, &["127.0.0.1", "refused"]);
    refused(&home, &format!("{url}?sslmode=sesam"), 2, &["verify-full"]);
    refused(&home, &format!("postgre://ann:{PASSWORD}@{at}/postgres"), 2, &["postgre://ann@", "postgres://USER"]);
    pretend_to_be_old(&admin, "gran");
    refused(&home, &format!("postgres://gran@{at}/postgres"), 2, &["PostgreSQL 12.22", "needs 13 or later"]);

    admin.run("GRANT CREATE ON DATABASE postgres TO ann");
    let remote = remote();
    home.configure(&remote.url(), FAST);
    for args in [&["sync", "hn"][..], &["status"], &["verify", "hn", "--store"], &["verify", "--store", "--json"]] {
        let done = home.run(&[args, &["--store", &format!("{url}?schema=new")]].concat()).exits(0);
        assert!(!done.out.contains("sesame") && !done.err.contains("sesame"), "{done:?}");
    }
}

/// To one role the server answers as one of version 12 would.
fn pretend_to_be_old(admin: &Session, role: &str) {
    admin.run(&format!("CREATE ROLE {role} LOGIN"));
    admin.run(&format!("CREATE SCHEMA {role} AUTHORIZATION {role}"));
    admin.run(&format!(
        "CREATE FUNCTION {role}.current_setting(name text) RETURNS text LANGUAGE sql AS
         $$ SELECT CASE name WHEN 'server_version_num' THEN '120022' ELSE '12.22' END $$"
    ));
    admin.run(&format!("ALTER ROLE {role} SET search_path = {role}, pg_catalog"));
}

#[test]
fn a_database_from_the_future_is_left_alone() {
    let schema = Schema::new();
    let remote = remote();
    let home = Home::with_store(&schema.url(), &remote.url(), FAST);
    home.run(&["status"]).exits(2).complains(&["there is no store in schema", "hint: "]);
    home.run(&["sync", "hn"]).exits(0);
    schema.session().run("INSERT INTO highwater_schema (version, name, checksum) VALUES (9999, 'later', 'x')");
    for args in [&["sync", "hn"][..], &["status"], &["verify", "hn"], &["ledger"], &["dead-letters", "list"]] {
        home.run(args).exits(2).complains(&["version 9999", "newer", "hint: "]);
    }
}
