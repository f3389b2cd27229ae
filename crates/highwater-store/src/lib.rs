//! Where the mirror lives: the store interface, its backends, the ledger, and one suite that every backend passes.

mod blobs;
mod copy;
mod error;
mod execution;
mod follow;
mod ledger;
mod live;
mod mailboxes;
mod migrations;
mod moves;
mod postgres;
mod rules;
mod search;
mod sqlite;
mod store;
#[cfg(feature = "suite")]
pub mod suite;
mod vault;

pub use blobs::{BlobName, Blobs};
pub use copy::{Amendment, Cell, Content, CopyProgress, CopyReport, Hold, Row, Scan, TableReport, copy};
pub use error::{ErrorKind, Result, StoreError};
pub use execution::Execution;
pub use follow::{Applied, Columns, FollowStore, Followed, Misderived, Tidings};
pub use ledger::{Broken, ChainCheck, FIRST_PREV_HASH, LedgerEntry, LedgerLine, payload_text};
pub use live::{
    AlertNote, AlertRow, CollectNames, Collected, EndWindow, Heard, LISTENER, LiveCommit, LiveCommitted, LiveSettled,
    LiveState, LiveStore, NamesIn, NewWindow, RescanPlan, RoleAsk, StoreSizes,
};
pub use mailboxes::{MailboxId, MailboxNote, MailboxRow, MailboxStatus, MailboxStore};
pub use migrations::{Kind, Shape, ShapeColumn};
pub use moves::MoveProgress;
pub use postgres::{LeaseClock, PostgresIndex, PostgresOptions, PostgresStore};
pub use search::{Collection, Document, Found, Hit, Indexing, Opening, SearchIndex, TextRow, TextStore, Texts};
pub use sqlite::{Durability, GroupLimits, Mode, OpenOptions, Sharding, SqliteIndex, SqliteStore};
pub use store::{
    Claim, Claimed, Close, Closed, Commit, Counts, Download, DownloadNote, ExceptionFilter, Known, Outlook, Page, Plan,
    RunEnd, RunOutcome, RunStart, RunTallies, SHARE_LASTS, ShareAsk, Store, StoredRow, StreamRow, Wanted, WorkerRow,
};
pub use vault::{KEY_FILE, KeyId, Place, Vault, VaultError, VaultKey};
