//! No room at the server: the run says so, keeps what it has in hand, and goes on by itself when there is room again.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    time::Duration,
};

use highwater_pg_server::{Durability, Server};

use crate::support::{Disk, FAST, Home, Schema, Sim, assert_mirrors, until};

const ITEMS: u32 = 12_000;

#[test]
fn a_full_server_is_waited_for_until_there_is_room_again() {
    let server = Server::start(Durability::Off).unwrap();
    let (schema, sim) = (Schema::on(&server.url()), Sim::start(ITEMS, "none"));
    let Some(disk) = Disk::mount(server.folder().join("disk")) else {
        println!("skipped: a tmpfs cannot be mounted here");
        return;
    };
    let own = fs::metadata(server.data()).unwrap();
    chown(disk.path(), Some(own.uid()), Some(own.gid())).unwrap();
    let session = schema.session();
    session.run(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.path().display()));
    let home = Home::with_store(&schema.url_and("options=-cdefault_tablespace=small"), &sim.url(), FAST);

    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0; 60 << 20]).unwrap();
    let running = home.start(&["sync", "hn"]);
    let patience = Duration::from_secs(30);
    until("a full disk", patience, || running.err().contains("the store cannot write").then_some(()));
    fs::remove_file(&ballast).unwrap();
    let done = running.wait().exits(0).complains(&["No space left on device", "the store writes again"]);
    assert!(!done.err.contains("error:"), "{}", done.err);
    assert_eq!(sim.item_requests(), u64::from(ITEMS), "what was in hand is kept while the disk is full");
    assert_mirrors(&session, &sim, 1, i64::from(ITEMS));
    home.run(&["verify", "hn"]).exits(0);
}
