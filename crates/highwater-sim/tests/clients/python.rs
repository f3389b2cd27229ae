//! A virtual environment of Python with packages from PyPI, made on first use.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The Python of the environment of that name. `packages` are divided by spaces.
pub(crate) fn with(name: &str, packages: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (python, mark) = (home.join("bin/python"), home.join("installed"));
    // Tests that need it run in processes of their own.
    let lock = fs::File::create(home.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == packages) {
        return python;
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(pip.args(packages.split(' ')));
    fs::write(mark, packages).unwrap();
    python
}

fn run(command: &mut Command) {
    let hint = "this test needs python3 with venv, and PyPI; set HIGHWATER_SKIP_CLIENTS to go without";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    assert!(output.status.success(), "{command:?}: {}; {hint}", String::from_utf8_lossy(&output.stderr));
}
