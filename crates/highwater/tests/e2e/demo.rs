//! The two-minute tour.

use std::fs;

use serde_json::Value as Json;

use crate::support::Home;

#[test]
fn the_demo_ends_well_and_leaves_nothing_behind() {
    let home = Home::bare();
    let scratch = home.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let mut command = home.command(&["demo", "--items", "1000"]);
    command.env("TMPDIR", &scratch);
    let done = home.launch(command).wait().exits(0);
    for part in ["is killed (SIGKILL)", "verify: every id", "Done."] {
        assert!(done.out.contains(part), "{part:?} is not in {}", done.out);
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "the demo left something behind");
    assert!(!home.path("highwater.db").exists());
}

#[test]
fn the_demo_tells_scripts_what_it_found() {
    let home = Home::bare();
    let found = home.run(&["demo", "--items", "1000", "--json"]).exits(0).json();
    let letters = found["dead_letters"].as_array().unwrap().len();
    assert_eq!((&found["items"], &found["never_answer"]), (&1000.into(), &letters.into()));
    assert_eq!(found["sync"]["streams"][0]["stored"], found["verify"]["streams"][0]["stored"]);
    assert_eq!((&found["verify"]["streams"][0]["unexplained"], &found["kept"]), (&0.into(), &Json::Null));
}
