//! The key that credentials are sealed with: made, lost, wrong, changed.

use std::{fs, os::unix::fs::PermissionsExt};

use super::Post;
use crate::support::{Database, Done};

impl Post {
    fn key(&self) -> String {
        fs::read_to_string(self.home.path("highwater.key")).unwrap()
    }

    fn with_env(&self, env: &[(&str, &str)], args: &[&str]) -> Done {
        let mut command = self.home.command(args);
        command.envs(env.iter().copied());
        self.home.launch(command).wait()
    }
}

#[test]
fn a_key_is_made_once_for_its_owner_alone_and_nothing_opens_without_it() {
    let post = Post::new();
    post.import().exits(0);
    let key = post.key();
    let mode = fs::metadata(post.home.path("highwater.key")).unwrap().permissions().mode();
    assert_eq!((key.trim().len(), mode & 0o777), (64, 0o600));
    post.import().exits(0);
    assert_eq!(post.key(), key);

    post.home.write("highwater.key", &"0".repeat(64));
    post.check().exits(4).complains(&["sealed with key", "66687aad", "highwater auth mail"]);
    post.home.write("highwater.key", "nonsense");
    post.check().exits(4).complains(&["highwater.key", "64 hexadecimal digits"]);
    fs::remove_file(post.home.path("highwater.key")).unwrap();
    post.check().exits(4).complains(&["there is no key at highwater.key", "highwater auth mail"]);
    assert!(!post.home.path("highwater.key").exists(), "a key that is lost is not made anew unasked");
    post.with_env(&[("HIGHWATER_KEY", "nonsense")], &["auth", "mail", "--check"])
        .exits(4)
        .complains(&["HIGHWATER_KEY"]);
    post.with_env(&[("HIGHWATER_KEY", key.trim())], &["auth", "mail", "--check"]).exits(0);
    post.import().exits(0);
    post.check().exits(0);
    assert_ne!(post.key(), key, "new credentials, new key");
}

#[test]
fn a_row_that_was_altered_is_told_from_a_wrong_key() {
    let post = Post::new();
    post.import().exits(0);
    let path = post.home.path("highwater.db");
    let swap = "CASE substr(credentials, 60, 1) WHEN 'A' THEN 'B' ELSE 'A' END";
    let altered =
        format!("UPDATE mailboxes SET credentials = substr(credentials, 1, 59) || {swap} || substr(credentials, 61)");
    Database::meddle(&path, &altered);
    post.check().exits(4).complains(&["altered", "highwater auth mail"]);
    post.home.run(&["auth", "rotate-key"]).exits(4).complains(&["altered"]);
    post.import().exits(0);
    // Moved to another row, it is not the other's.
    Database::meddle(&path, "UPDATE mailboxes SET id = 'f849cf691037d1d7', provider_email = 'bob@example.com'");
    Database::meddle(
        &path,
        "INSERT INTO mailboxes (id, org_id, provider_email, source, status, credentials, created_at, updated_at)
         SELECT 'e985ca47a38d9189', org_id, 'ann@example.com', source, status, credentials, created_at, updated_at
         FROM mailboxes",
    );
    post.check().exits(0);
    post.home.run(&["auth", "rotate-key"]).exits(4).complains(&["moved here from another row"]);
}

#[test]
fn a_changed_key_opens_everything_and_the_old_one_nothing() {
    let post = Post::new();
    post.home.run(&["auth", "rotate-key"]).exits(4).complains(&["there is no key"]);
    post.import().exits(0);
    let old = post.key();
    let changed = post.home.run(&["auth", "rotate-key", "--json"]).exits(0).json();
    assert_eq!(changed["resealed"], 1);
    let new = post.key();
    assert_ne!(new, old);
    assert!(post.credentials().starts_with(&format!("v1:{}:", changed["key"].as_str().unwrap())));
    post.check().exits(0);
    post.home.write("highwater.key", &old);
    post.check().exits(4).complains(&["sealed with key"]);

    // Killed after the rows were written and before the file was: both keys are there, and all goes on.
    post.home.write("highwater.key.new", &new);
    post.check().exits(0);
    post.home.run(&["auth", "rotate-key"]).exits(0);
    assert_eq!((post.key(), post.home.path("highwater.key.new").exists()), (new, false));
    post.check().exits(0);
}

#[test]
fn a_key_in_the_environment_is_changed_there() {
    let post = Post::new();
    let (old, new) = ("a".repeat(64), "b".repeat(64));
    let (old, new) = (("HIGHWATER_KEY", old.as_str()), ("HIGHWATER_NEW_KEY", new.as_str()));
    post.with_env(&[old], &["auth", "mail", "--refresh-token-file", "token.txt"]).exits(0);
    assert!(!post.home.path("highwater.key").exists());
    post.with_env(&[old], &["auth", "rotate-key"]).exits(2).complains(&["HIGHWATER_NEW_KEY"]);
    post.with_env(&[old, new], &["auth", "rotate-key"]).exits(0);
    post.with_env(&[old], &["auth", "mail", "--check"]).exits(4).complains(&["sealed with key"]);
    post.with_env(&[("HIGHWATER_KEY", new.1)], &["auth", "mail", "--check"]).exits(0);
}
