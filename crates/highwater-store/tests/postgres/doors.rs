//! Getting in: passwords, databases, privileges, versions, sockets, certificates, and a server that goes away.

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use highwater_pg_server::{Durability, Server, Stop, USER};
use highwater_store::{
    ErrorKind, PostgresOptions, PostgresStore, Store, StoreError,
    suite::{Lab, Scene, item, scene::at},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::ground::{Ground, connect};

async fn refusal(url: &str) -> StoreError {
    PostgresStore::open(PostgresOptions::new(url)).await.err().expect("refused")
}

fn text(error: &StoreError) -> String {
    format!("{error}: {}", error.source.as_ref().map(ToString::to_string).unwrap_or_default())
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let ground = Ground::new().await;
    drop(ground.lab().await);
    let reader = PostgresStore::open(PostgresOptions::read_only(&ground.url)).await.unwrap();
    let stream = highwater_core::StreamId { source: "hn".parse().unwrap(), stream: "items".parse().unwrap() };
    assert_eq!(reader.open_stream(&stream, "id").await.unwrap_err().kind, ErrorKind::CannotOpen);
    assert_eq!(reader.streams().await.unwrap(), []);
    ground.cells("INSERT INTO highwater_schema (version, name, checksum) VALUES (99, 'later', '')").await;
    let error = refusal(&ground.url).await;
    assert_eq!(error.kind, ErrorKind::TooNew);
    assert!(error.doing.contains("schema version 99"), "{error}");
    ground.leave().await;
}

#[tokio::test]
async fn each_closed_door_says_what_it_is() {
    let server = Server::start(Durability::Off).unwrap();
    let admin = connect(&server.url()).await;
    admin.batch_execute("CREATE ROLE ann LOGIN PASSWORD 'right'").await.unwrap();
    admin.batch_execute("CREATE DATABASE tidy").await.unwrap();
    let rules = server.data().join("pg_hba.conf");
    let trusting = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, format!("host all ann all scram-sha-256\n{trusting}")).unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();

    let at = format!("127.0.0.1:{}", server.port());
    let wrong = refusal(&format!("postgres://ann:wrong@{at}/postgres")).await;
    assert_eq!(wrong.kind, ErrorKind::Unauthorized);
    assert!(text(&wrong).contains("password authentication failed for user \"ann\""), "{}", text(&wrong));
    let none = refusal(&format!("postgres://ann@{at}/postgres")).await;
    assert_eq!(none.kind, ErrorKind::Unauthorized, "{}", text(&none));
    let unknown = refusal(&format!("postgres://{USER}@{at}/nowhere")).await;
    assert_eq!(unknown.kind, ErrorKind::CannotOpen);
    assert!(text(&unknown).contains("database \"nowhere\" does not exist"), "{}", text(&unknown));
    let forbidden = refusal(&format!("postgres://ann:right@{at}/postgres?schema=mirror")).await;
    assert_eq!(forbidden.kind, ErrorKind::CannotOpen);
    assert!(text(&forbidden).contains("permission denied"), "{}", text(&forbidden));
    let nobody = refusal("postgres://ann@127.0.0.1:1/postgres").await;
    assert_eq!(nobody.kind, ErrorKind::Unreachable, "{}", text(&nobody));

    let socket = format!("postgres:///tidy?user={USER}&host={}&port={}", server.folder().display(), server.port());
    PostgresStore::open(PostgresOptions::new(&socket)).await.unwrap();
    let empty = PostgresStore::open(PostgresOptions::read_only(server.url())).await.err().unwrap();
    assert_eq!(empty.kind, ErrorKind::CannotOpen);
}

#[tokio::test]
async fn a_restarted_server_is_found_again() {
    let server = Server::start(Durability::Full).unwrap();
    let store = Arc::new(PostgresStore::open(PostgresOptions::new(server.url())).await.unwrap());
    let lab = Lab { store, query: Box::new(|_| Box::pin(async { Vec::new() })) };
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    for (id, stop) in [(1, Stop::Fast), (2, Stop::Immediate)] {
        scene.commit(&claimed.lease, vec![item(id, "kept", &[])], vec![], at(0)).await.unwrap();
        server.stop(stop).unwrap();
        let down = scene.commit(&claimed.lease, vec![item(9, "", &[])], vec![], at(0)).await;
        assert_eq!(down.unwrap_err().kind, ErrorKind::Unavailable);
        server.resume().unwrap();
        assert_eq!(scene.stored(id).await.unwrap().body, item(id, "kept", &[]).body, "a commit outlives the server");
    }
    assert_eq!(scene.row().await.stored, 2);
}

#[tokio::test]
async fn certificates_are_verified_as_far_as_asked() {
    let server = Server::start(Durability::Off).unwrap();
    let authority = authority();
    certify(&server, &authority, "localhost");
    let folder = tempfile::TempDir::new().unwrap();
    let (ours, other) = (folder.path().join("ours.pem"), folder.path().join("other.pem"));
    fs::write(&ours, authority.pem()).unwrap();
    fs::write(&other, self::authority().pem()).unwrap();
    let open = async |host: &str, mode: &str, root: &Path| {
        let (port, root) = (server.port(), root.display());
        let url = format!("postgres://{USER}@{host}:{port}/postgres?sslmode={mode}&sslrootcert={root}");
        PostgresStore::open(PostgresOptions::new(url)).await.map(drop).map_err(|error| error.kind)
    };
    assert_eq!(open("localhost", "verify-full", &ours).await, Ok(()));
    assert_eq!(open("localhost", "verify-full", &other).await, Err(ErrorKind::CannotOpen));
    assert_eq!(open("127.0.0.1", "verify-full", &ours).await, Err(ErrorKind::CannotOpen), "another name");
    assert_eq!(open("127.0.0.1", "verify-ca", &ours).await, Ok(()));
    assert_eq!(open("127.0.0.1", "verify-ca", &other).await, Err(ErrorKind::CannotOpen));
    assert_eq!(open("127.0.0.1", "require", &other).await, Err(ErrorKind::CannotOpen), "as libpq: a root is used");
    assert_eq!(open("127.0.0.1", "prefer", &other).await, Ok(()));
    assert_eq!(open("127.0.0.1", "disable", &other).await, Err(ErrorKind::Unauthorized), "the server wants TLS");
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Gives the server a certificate for `name`, and lets it take encrypted connections only.
fn certify(server: &Server, authority: &CertifiedIssuer<'static, KeyPair>, name: &str) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.into()]).unwrap().signed_by(&key, authority).unwrap();
    let data = server.data();
    let owner = fs::metadata(&data).unwrap();
    for (file, pem) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        let path = data.join(file);
        fs::write(&path, pem).unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let settings = data.join("postgresql.conf");
    fs::write(&settings, fs::read_to_string(&settings).unwrap() + "ssl = on\n").unwrap();
    fs::write(data.join("pg_hba.conf"), "hostssl all all all trust\n").unwrap();
    server.stop(Stop::Fast).unwrap();
    server.resume().unwrap();
}
