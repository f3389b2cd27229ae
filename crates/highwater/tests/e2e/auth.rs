//! Credentials of a mailbox: how they come, whose they are, how they are kept, and what is said when they fail.

mod consent;
mod keys;

use std::{fs, path::Path, process::Command};

use crate::support::{Done, Home, Sim, program};

/// What no output may repeat.
const CLIENT_SECRET: &str = "sim-secret";
const REFRESH_TOKEN: &str = "sim-refresh-token";

/// A mailbox, and a configuration that knows it.
struct Post {
    sim: Sim,
    home: Home,
}

impl Post {
    fn new() -> Post {
        Post::of(Sim::gmail(20, "none"))
    }

    fn planned(plan: &str) -> Post {
        let folder = Home::bare();
        let path = folder.write("plan.toml", plan);
        Post::of(Sim::gmail(20, path.to_str().unwrap()))
    }

    fn of(sim: Sim) -> Post {
        let post = Post { sim, home: Home::bare() };
        post.configure("ann@example.com", &format!("client_id = \"sim-client\"\nclient_secret = \"{CLIENT_SECRET}\""));
        post.home.write("token.txt", &format!("{REFRESH_TOKEN}\n"));
        post
    }

    fn configure(&self, account: &str, client: &str) {
        let url = self.sim.url();
        let text = format!(
            "[sources.mail]\nkind = \"gmail\"\naccount = \"{account}\"\nbase_url = \"{url}\"\n\
             token_url = \"{url}/token\"\nauth_url = \"{url}/o/oauth2/v2/auth\"\n{client}\n"
        );
        self.home.write("highwater.toml", &text);
    }

    fn import(&self) -> Done {
        self.home.run(&["auth", "mail", "--refresh-token-file", "token.txt", "--json"])
    }

    fn check(&self) -> Done {
        self.home.run(&["auth", "mail", "--check"])
    }

    fn credentials(&self) -> String {
        self.home.database().one("SELECT credentials FROM mailboxes")
    }

    /// Asks for everything again: what is stored has to be opened and used.
    fn expire(&self) {
        self.sim.act("expire_tokens");
    }
}

#[test]
fn an_imported_token_is_checked_and_kept_sealed() {
    let post = Post::new();
    let said = post.import().exits(0).json();
    assert_eq!((said["source"].as_str(), said["account"].as_str()), (Some("mail"), Some("ann@example.com")));
    assert!(said["scopes"].to_string().contains("gmail.readonly"), "{said}");
    let row = "SELECT org_id || ' ' || provider_email || ' ' || source || ' ' || status FROM mailboxes";
    assert_eq!(post.home.database().one::<String>(row), "default ann@example.com mail connected");
    assert!(post.credentials().starts_with("v1:"), "{}", post.credentials());
    for file in ["highwater.db", "highwater.db-wal"] {
        let bytes = fs::read(post.home.path(file)).unwrap_or_default();
        for canary in [REFRESH_TOKEN, CLIENT_SECRET, "ya29."] {
            assert!(!bytes.windows(canary.len()).any(|part| part == canary.as_bytes()), "{canary} in {file}");
        }
    }
    post.check().exits(0);
    let before = post.sim.stats()["tokens_issued"].clone();
    post.check().exits(0);
    assert_eq!(post.sim.stats()["tokens_issued"], before, "an access token that is fresh is used by the next process");
    post.expire();
    post.check().exits(0);
}

#[test]
fn a_token_may_come_by_standard_input_or_in_google_s_json_with_its_client() {
    let post = Post::new();
    let line = "exec \"$0\" auth mail --refresh-token-file - < token.txt";
    let piped = post.home.shielded(Path::new("/bin/sh"), &["-c", line, program().to_str().unwrap()]);
    post.home.launch(piped).wait().exits(0);
    post.configure("ann@example.com", "");
    post.import().exits(2).complains(&["there is no OAuth client", "--client-secret"]);
    let json = format!(
        "{{\"refresh_token\":\"{REFRESH_TOKEN}\",\"client_id\":\"sim-client\",\"client_secret\":\"{CLIENT_SECRET}\"}}"
    );
    post.home.write("token.txt", &json);
    post.import().exits(0);
    post.expire();
    post.check().exits(0);
    post.home.write("token.txt", "{\"token\":\"canary\"}");
    let refused = post.import().exits(2).complains(&["no refresh token"]);
    assert!(!refused.err.contains("canary"));
}

#[test]
fn a_token_of_another_account_is_refused_and_not_kept() {
    let post = Post::new();
    let client = format!("client_id = \"sim-client\"\nclient_secret = \"{CLIENT_SECRET}\"");
    post.configure("bob@example.com", &client);
    let refused = post.import().exits(4).complains(&["belongs to another account", "sources.mail.account", "hint"]);
    assert!(!refused.err.contains("@example.com"), "{}", refused.err);
    assert_eq!(post.home.database().one::<i64>("SELECT count(*) FROM mailboxes"), 0);
    post.configure("ANN@example.com", &client);
    post.import().exits(0);
}

#[test]
fn a_grant_that_has_ended_is_told_with_the_likely_reason_and_what_to_do() {
    let post = Post::new();
    let told = &["invalid_grant", "7 days", "password", "revoked", "highwater auth mail"];
    post.check().exits(4).complains(&["there are none yet", "highwater auth mail"]);
    post.import().exits(0);
    post.expire();
    post.sim.act("revoke");
    post.check().exits(4).complains(told);
    post.import().exits(4).complains(told);
}

#[test]
fn a_missing_scope_and_a_missing_client_are_explained() {
    let post = Post::planned("[token]\nscopes = [\"https://www.googleapis.com/auth/gmail.labels\"]");
    post.import().exits(4).complains(&["gmail.readonly", "consent page"]);
    let post = Post::new();
    post.configure("ann@example.com", "client_id = \"x\"\nclient_secret_env = \"NO_SUCH_VARIABLE\"");
    post.home.run(&["auth", "mail"]).exits(2).complains(&["client_secret_env", "NO_SUCH_VARIABLE"]);
    post.configure("ann@example.com", "client_id = \"x\"");
    post.home.run(&["auth", "mail"]).exits(2).complains(&["sources.mail.client_id"]);
    post.home.run(&["auth", "hn"]).exits(2).complains(&["hn", "mail"]);
    post.home.run(&["auth", "mail", "--check", "--no-browser"]).exits(2);
    post.home.run(&["auth", "rotate-key", "--check"]).exits(2).complains(&["rotate-key"]);
    post.home.write("highwater.toml", "[sources.rotate-key]\nkind = \"hn\"\n");
    post.home.run(&["auth", "rotate-key"]).exits(2).complains(&["choose another name"]);
    Home::new("http://127.0.0.1:1", "").run(&["auth", "hn"]).exits(2).complains(&["needs no credentials"]);
}

#[test]
fn a_service_account_acts_for_the_account() {
    let post = Post::new();
    let made = Command::new("openssl").args(["genrsa", "2048"]).output().unwrap();
    let pem = String::from_utf8(made.stdout).unwrap();
    let key = serde_json::json!({
        "type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key": pem,
        "private_key_id": "canary-key-id",
    });
    post.home.write("key.json", &key.to_string());
    post.configure("ann@example.com", "");
    post.home.run(&["auth", "mail", "--service-account", "key.json"]).exits(0);
    post.expire();
    post.check().exits(0);
    post.configure("bob@example.com", "");
    let refused = post.home.run(&["auth", "mail", "--service-account", "key.json"]).exits(4);
    let refused = refused.complains(&["may not act for the account"]);
    assert!(!refused.err.contains('@'), "{}", refused.err);
    post.home.write("key.json", "{\"private_key\":\"canary\"}");
    let refused = post.home.run(&["auth", "mail", "--service-account", "key.json"]).exits(2);
    assert!(!refused.err.contains("canary"), "{}", refused.err);
}

#[test]
fn nothing_secret_is_written_to_standard_error() {
    let post = Post::new();
    let import = ["auth", "mail", "--refresh-token-file", "token.txt", "-vv"];
    let mut said = post.home.run(&import).exits(0).err;
    post.expire();
    said += &post.home.run(&["auth", "mail", "--check", "-vv"]).exits(0).err;
    said += &post.home.run(&["auth", "rotate-key", "-vv"]).exits(0).err;
    post.sim.act("revoke");
    post.expire();
    said += &post.home.run(&["auth", "mail", "--check", "-vv"]).exits(4).err;
    said += &post.home.run(&import).exits(4).err;
    assert!(said.contains("the access token was renewed"), "the log is on: {said}");
    let key = fs::read_to_string(post.home.path("highwater.key")).unwrap();
    for canary in [REFRESH_TOKEN, CLIENT_SECRET, "ya29.", "ann@example.com", key.trim()] {
        assert!(!said.contains(canary), "{canary} in {said}");
    }
}
