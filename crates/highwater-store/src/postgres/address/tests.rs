//! What a URL and its surroundings come to.

use super::*;

fn parse(url: &str, variables: &[(&str, &str)]) -> Address {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Address::parse(url, &find).unwrap_or_else(|error| panic!("{url}: {error}: {:?}", error.source))
}

fn hosts(address: &Address) -> String {
    format!("{:?} {:?}", address.config.get_hosts(), address.config.get_ports())
}

#[test]
fn hosts_come_from_the_url_or_from_libpqs_variables() {
    let variables = [("PGHOST", "db.example"), ("PGPORT", "6000"), ("PGUSER", "ann"), ("PGDATABASE", "mirror")];
    let plain = parse("postgres://", &variables);
    assert_eq!(hosts(&plain), r#"[Tcp("db.example")] [6000]"#);
    assert_eq!((plain.config.get_user(), plain.config.get_dbname()), (Some("ann"), Some("mirror")));
    let several = parse("postgresql://bob@a:1,b:2/x", &variables);
    assert_eq!(hosts(&several), r#"[Tcp("a"), Tcp("b")] [1, 2]"#);
    assert_eq!((several.config.get_user(), several.config.get_dbname()), (Some("bob"), Some("x")));
    for socket in ["postgres:///x?host=/run/pg", "postgres:///x?host=%2Frun%2Fpg", "postgres://%2Frun%2Fpg/x"] {
        assert_eq!(parse(socket, &[]).config.get_hosts(), [Host::Unix("/run/pg".into())], "{socket}");
    }
    assert_eq!(hosts(&parse("postgres:///x", &[])), r#"[Tcp("localhost")] []"#);
}

#[test]
fn a_schema_is_chosen_in_any_of_three_ways() {
    let schema = |url| parse(url, &[]).schema;
    assert_eq!(schema("postgres://h/x"), None);
    assert_eq!(schema("postgres://h/x?schema=My%20own").as_deref(), Some("My own"));
    assert_eq!(schema("postgres://h/x?options=-csearch_path%3Dmirror").as_deref(), Some("mirror"));
    let address = parse("postgres://h/x?options=-c%20search_path%3Da,b%20-c%20work_mem%3D9MB", &[]);
    assert_eq!((address.schema.as_deref(), address.config.get_options()), (Some("a"), Some("-cwork_mem=9MB")));
}

#[test]
fn trust_follows_the_url_then_the_variable() {
    let mode = |url, variables| parse(url, variables).trust.mode;
    assert_eq!(mode("postgres://h/x", &[]), SslMode::Prefer);
    assert_eq!(mode("postgres://h/x", &[("PGSSLMODE", "verify-ca")]), SslMode::VerifyCa);
    assert_eq!(mode("postgres://h/x?sslmode=verify-full", &[("PGSSLMODE", "disable")]), SslMode::VerifyFull);
    let refused = Address::parse("postgres://h/x?sslmode=maybe", &|_| None).err().unwrap();
    assert!(refused.doing.contains("verify-full"), "{refused}");
}

#[test]
fn nothing_that_is_shown_tells_the_password() {
    let address = parse("postgres://ann:secret@h/x", &[]);
    assert_eq!(address.shown(), r#"PostgreSQL database "x" at h"#);
    for broken in ["postgres://ann:secret@h/x?nonsense=1", "postgres://ann:secret@h:port/x", "mysql://ann:secret@h/x"] {
        let error = Address::parse(broken, &|_| None).err().unwrap();
        assert_eq!(error.kind, ErrorKind::CannotOpen);
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
