//! What the help of each command shows.

pub(super) const ALL: &str = "\
Examples:
  highwater demo                     see a mirror built under faults, killed, resumed and proven
  highwater sync hn --last 10000     mirror the newest 10,000 items into ./highwater.db
  highwater sync hn                  mirror all of Hacker News; stop and start it as you like
  highwater serve                    stay current from then on
  highwater status                   how far is it
  highwater verify hn                compare with the remote and prove it
  highwater search 'rust compiler'   find it in what is mirrored

Exit codes:
  0 done and complete      1 failed      2 bad usage or configuration
  3 finished, but something is unaccounted for      4 credentials missing or refused
  130/143 stopped by a signal, in order";

pub(super) const AUTH: &str = "\
Examples:
  highwater auth mail --client-secret client_secret.json    consent in the browser
  highwater auth mail --no-browser                          prints the address instead
  highwater auth mail --refresh-token-file token.json       imports a refresh token; - is stdin
  highwater auth mail --service-account key.json            domain-wide delegation
  highwater auth mail --check                               whether what is stored still works
  highwater auth rotate-key                                 seal all credentials with a new key

Only reading is asked for (gmail.readonly). Credentials are kept in the store, sealed with the key in
HIGHWATER_KEY (64 hexadecimal digits) or in highwater.key, which is made beside a SQLite store, or beside
the configuration for PostgreSQL. Keep a copy of it: without it, 'highwater auth' must be run again.
To change a key that is in HIGHWATER_KEY, put the new one into HIGHWATER_NEW_KEY.
Exit code 4: credentials are missing, expired, refused, or belong to another account.";

pub(super) const SYNC: &str = "\
Examples:
  highwater sync hn                        everything up to now
  highwater sync hn --last 10000           only the newest 10,000 ids (later syncs go on from there)
  highwater sync hn --from 1 --to 500000   a range of ids, both ends included
  highwater sync hn --since 2024-01-31     everything posted since then (UTC; or 2024-01-31T18:00:00Z)
  highwater sync hn --force --last 1000    fetch the newest 1,000 again and count what differed
  highwater sync bi                        a Looker instance as it is now, with what changed since the last time
  highwater sync bi --plan                 how many calls that would take, for the price of the lists";

pub(super) const SERVE: &str = "\
Examples:
  highwater serve                            every source of the configuration, until stopped
  highwater serve hn --listen 127.0.0.1:0    one source; metrics and health on a free port

It follows the live feed, catches up, looks again at what may still change, and accounts for every moment
in which it did not listen. Watch it with 'highwater status' and at http://127.0.0.1:8722/metrics, /healthz
and /readyz. The configuration is read at start: restart it to apply changes.
Ended by SIGINT or SIGTERM it exits with 130 or 143; with 1 when something does not heal by itself.";

pub(super) const VERIFY: &str = "\
Examples:
  highwater verify hn                 all keys up to 10,000, a sample of 10,000 above
  highwater verify hn --sample all    every key
  highwater verify --store            check the files of the store itself; before a URL it names the store

Verify repairs nothing; 'highwater sync SOURCE --force' does.
Exit code 0 means complete and sound, 3 that something is missing, differs or has no explanation.";

pub(super) const DEAD_LETTERS: &str = "\
Examples:
  highwater dead-letters list hn
  highwater dead-letters show hn 8863
  highwater dead-letters replay hn          put all back to work; the next sync fetches them
  highwater dead-letters replay hn 8863 --now";

pub(super) const COPY: &str = "\
Examples:
  highwater store copy --to postgres://ann@db.example.com/mirrors
  highwater store copy --from sqlite:highwater.db --to postgres://ann@localhost/mirrors?schema=hn
  highwater store copy --from postgres://localhost/mirrors --to sqlite:small.db

The target must be empty. Stopped at any moment, the same command goes on where it was. In the end
both sides are compared; only then does the target open for other commands, and sync goes on there.
Exit code 0 means that every table is the same on both sides, 1 that one is not.";

pub(super) const SIMULATE: &str = "\
Examples:
  highwater simulate hn                                  20,000 items, a calm remote
  highwater simulate hn --items 100000 --faults storm    errors, resets, throttling
  highwater simulate hn --faults plan.toml               your own plan; --print-plan shows every key of one
  highwater simulate hn --load items.jsonl.gz            real bodies, one JSON object a line
  highwater simulate gmail --items 5000                  a mailbox; --print-plan shows its plan
  highwater simulate looker --items 2000                 an instance of 2,000 dashboards and all that goes with them

Then point a source at it: base_url = \"http://127.0.0.1:8733\".
The truth to compare with is at /_sim/truth and /_sim/truth/users, counters are at /_sim/stats.

A plan with [mutations] makes items and profiles change while it runs; [stream] says how streams tell of it. By hand:
  curl '127.0.0.1:8733/_sim/mutate?id=19990&kind=dead'   score, text, kids, dead, delete or revive; &publish=false
  curl '127.0.0.1:8733/_sim/burst?count=500'             the newest 500 change at once
  curl '127.0.0.1:8733/_sim/profile?name=Bababa'         a profile changes
  curl '127.0.0.1:8733/_sim/grow?by=20'                  maxitem jumps, into what head.behind of the plan reserves
  curl '127.0.0.1:8733/_sim/stream?do=drop'              drop, cut, cancel, auth_revoked, silence or restore
  curl '127.0.0.1:8733/_sim/down?for_ms=60000'           every request is reset for a minute

Gmail: base_url = \"http://127.0.0.1:8733\", token_url = \"http://127.0.0.1:8733/token\". Unless the plan says otherwise
the account is ann@example.com, the client id sim-client, its secret sim-secret, and the refresh token
sim-refresh-token; /o/oauth2/v2/auth consents at once, and any service account may act for the account.
The plans are none, calm, storm, penalty, expiry and broken. By hand, with GET or POST:
  curl '127.0.0.1:8733/_sim/arrive?count=3'              mail arrives; /_sim/import?at=SECONDS: into the past
  curl '127.0.0.1:8733/_sim/label?id=ID&add=STARRED'     also remove=; /_sim/delete?id=ID: for good
  curl '127.0.0.1:8733/_sim/draft'                       a draft is saved, which gives it another id
  curl '127.0.0.1:8733/_sim/expire_history'              older history ids give 404
  curl '127.0.0.1:8733/_sim/expire_tokens'               access tokens end; /_sim/revoke: refresh tokens too
  curl '127.0.0.1:8733/_sim/penalty?for_s=60'            the penalty box; /_sim/down as above

Looker: base_url = \"http://127.0.0.1:8733\"; LOOKERSDK_CLIENT_ID=sim-client and LOOKERSDK_CLIENT_SECRET=sim-secret unless
the plan says otherwise. The plans are none, calm, storm and chaos. By hand, with GET, or POST and JSON:
  curl '127.0.0.1:8733/_sim/edit?type=dashboards&id=7'   another title; {\"set\": {...}} sets members
  curl '127.0.0.1:8733/_sim/insert?type=looks&count=3'   new ones, with their queries and metadata
  curl '127.0.0.1:8733/_sim/delete?type=looks&id=7'      to the trash; /_sim/restore, and /_sim/purge: for good
  curl '127.0.0.1:8733/_sim/hide?type=folders&id=7'      absent from lists, 404 alone; /_sim/show undoes it
  curl '127.0.0.1:8733/_sim/forbid?type=alerts'          the whole type is 403, or &status=404; /_sim/allow undoes it
  curl '127.0.0.1:8733/_sim/revoke'                      all tokens end; /_sim/credentials?client_secret=S changes it";

pub(super) const INIT: &str = "\
Examples:
  highwater init                                     ./highwater.toml, with comments
  highwater init ~/.config/highwater/highwater.toml  for every folder you work in";

pub(super) const STATUS: &str = "\
Examples:
  highwater status               every mirror of the store, also while a sync is at work
  highwater status hn            one source
  highwater status --json        for scripts: frontier, target, stored, missing, retrying, dead_letters, complete";

pub(super) const LEDGER: &str = "\
Examples:
  highwater ledger hn                        the last 50 lines
  highwater ledger hn --last 1000 --json     one JSON object a line
  highwater ledger --verify                  whether anything was changed or taken out since it was written

Exit code of --verify: 0 if the chain holds, 3 if it is broken.";

pub(super) const DEMO: &str = "\
Examples:
  highwater demo                     20,000 items under faults: two minutes at most
  highwater demo --items 100000      a larger mirror
  highwater demo --keep              leaves the store, to look into with any SQLite tool";

pub(super) const COMPLETIONS: &str = "\
Examples:
  highwater completions bash > /etc/bash_completion.d/highwater
  highwater completions zsh  > ~/.zfunc/_highwater
  highwater completions fish > ~/.config/fish/completions/highwater.fish";
