//! The pure crate stays pure: its dependencies bring no runtime, clock or randomness with them, and
//! its sources name none. Both checks are shown to fail on bad samples.

mod source;

use std::collections::BTreeSet;
use std::fs;

use source::{Source, code_only, is_word, root, rust_files};
use toml::{Table, Value};

const PURE: &str = "plimsoll-core";

/// Crates that the pure crate may not reach, not even through others.
const BANNED_CRATES: [&str; 14] = [
    "chrono",
    "dashmap",
    "getrandom",
    "metrics",
    "mio",
    "parking_lot",
    "quanta",
    "rand",
    "rayon",
    "smol",
    "socket2",
    "time",
    "tokio",
    "tracing",
];

/// Families of crates, by the beginning of their names.
const BANNED_FAMILIES: [&str; 8] =
    ["actix", "async-", "crossbeam", "futures", "metrics-", "rand_", "tokio-", "tracing-"];

/// Modules of the standard library that reach outside, or share what one machine should own.
const BANNED_MODULES: [&str; 9] = ["env", "fs", "io", "net", "os", "process", "random", "thread", "time"];

/// Names that mean a clock, a random order, a thread, shared state, a file or a socket wherever they
/// come from.
const BANNED_NAMES: [&str; 27] = [
    "AtomicBool",
    "AtomicU32",
    "AtomicU64",
    "AtomicUsize",
    "Condvar",
    "File",
    "HashMap",
    "HashSet",
    "Instant",
    "LazyLock",
    "Mutex",
    "OnceLock",
    "RandomState",
    "RwLock",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
    "eprintln",
    "include_bytes",
    "include_str",
    "option_env",
    "println",
    "sleep",
    "static",
    "thread_local",
];

/// The switch that breaks one rule at a time for the tests of the deterministic world.
const TEST_SWITCH: (&str, [&str; 2]) = ("core/src/mutation.rs", ["static", "thread_local"]);

fn table(path: &str) -> Table {
    let text = fs::read_to_string(root().join(path)).expect("the file is there");
    text.parse().expect("it is TOML")
}

/// What a manifest depends on outside its tests, by the real names of the crates.
fn direct_dependencies(manifest: &Table, workspace: &Table) -> BTreeSet<String> {
    let shared = workspace.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let places = std::iter::once(manifest).chain(targets.filter_map(|(_, target)| target.as_table()));
    let mut names = BTreeSet::new();
    for place in places {
        for section in ["dependencies", "build-dependencies"] {
            let entries = place.get(section).and_then(Value::as_table).into_iter().flatten();
            for (key, entry) in entries {
                let in_workspace = shared.and_then(|shared| shared.get(key));
                let renamed = [Some(entry), in_workspace].into_iter().flatten();
                let package = renamed.filter_map(|entry| entry.get("package")?.as_str()).next();
                names.insert(package.unwrap_or(key).to_owned());
            }
        }
    }
    names
}

/// Everything these crates bring along according to the lock file, themselves included. The lock file
/// lists no test dependencies of crates from outside the workspace.
fn with_transitive(direct: BTreeSet<String>, lock: &Table) -> BTreeSet<String> {
    let packages: Vec<&Value> = lock.get("package").and_then(Value::as_array).into_iter().flatten().collect();
    let mut reached = BTreeSet::new();
    let mut to_visit: Vec<String> = direct.into_iter().collect();
    while let Some(name) = to_visit.pop() {
        let own =
            packages.iter().filter(|package| package.get("name").and_then(Value::as_str) == Some(&name));
        let lists = own.filter_map(|package| package.get("dependencies")?.as_array());
        // An entry is a name, with a version behind it where there are several.
        let further = lists.flatten().filter_map(|entry| entry.as_str()?.split(' ').next());
        let further: Vec<String> = further.map(str::to_owned).collect();
        if reached.insert(name) {
            to_visit.extend(further);
        }
    }
    reached
}

fn banned_crates(names: &BTreeSet<String>) -> Vec<&str> {
    let is_banned = |name: &str| {
        let exactly = BANNED_CRATES.contains(&name);
        exactly || BANNED_FAMILIES.iter().any(|family| name.starts_with(family))
    };
    names.iter().map(String::as_str).filter(|name| is_banned(name)).collect()
}

/// Words and single signs of the code, each with the number of its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match is_word(first) {
                true => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            tokens.push((number + 1, &rest[..length]));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Forbidden names in a file of the pure crate, as `line: name`.
fn impurities(file: &Source) -> Vec<String> {
    let code = code_only(&file.text);
    let tokens = tokens(&code);
    let tests_from = code.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for (at, (line, word)) in tokens.iter().enumerate() {
        let is_allowed = file.path == TEST_SWITCH.0 && TEST_SWITCH.1.contains(word) && *line > tests_from;
        // A lifetime is no variable.
        let is_lifetime = at > 0 && tokens[at - 1].1 == "'";
        if BANNED_NAMES.contains(word) && !is_allowed && !is_lifetime {
            found.push(format!("{line}: {word}"));
        }
        if *word == "std" {
            let modules = modules_named(&tokens[at + 1..]);
            let banned = modules.into_iter().filter(|module| BANNED_MODULES.contains(module));
            found.extend(banned.map(|module| format!("{line}: std::{module}")));
        }
    }
    found
}

/// The modules that follow `std`: one, or several in braces.
fn modules_named<'a>(after: &[(usize, &'a str)]) -> Vec<&'a str> {
    let words: Vec<&str> = after.iter().map(|(_, word)| *word).take_while(|word| *word != ";").collect();
    match words.as_slice() {
        [":", ":", "{", rest @ ..] => {
            let mut depth = 1;
            let inside = rest.iter().take_while(|word| {
                depth += i32::from(**word == "{") - i32::from(**word == "}");
                depth > 0
            });
            inside.copied().collect()
        }
        [":", ":", module, ..] => vec![module],
        _ => Vec::new(),
    }
}

#[test]
fn the_pure_crate_depends_on_no_runtime_clock_or_randomness() {
    let (manifest, workspace) = (table("core/Cargo.toml"), table("Cargo.toml"));
    let direct = direct_dependencies(&manifest, &workspace);
    assert!(direct.contains("serde"), "the manifest is read: {direct:?}");
    let all = with_transitive(direct, &table("Cargo.lock"));
    assert!(all.contains("serde_derive"), "the lock file is walked: {all:?}");
    assert!(!all.contains("proptest"), "test dependencies do not count: {all:?}");
    let banned = banned_crates(&all);
    assert!(banned.is_empty(), "{PURE} depends on {banned:?}");
}

#[test]
fn the_pure_crate_forbids_unsafe_code() {
    let workspace = table("Cargo.toml");
    let level = &workspace["workspace"]["lints"]["rust"]["unsafe_code"];
    assert_eq!(level.as_str(), Some("forbid"));
    assert_eq!(table("core/Cargo.toml")["lints"]["workspace"].as_bool(), Some(true));
}

#[test]
fn the_sources_of_the_pure_crate_name_nothing_from_outside() {
    let files = rust_files(&["core/src"]);
    assert!(files.iter().any(|file| file.path == "core/src/lib.rs"), "the sources are found");
    let found = files.iter().flat_map(|file| {
        impurities(file).into_iter().map(move |impurity| format!("{}:{impurity}", file.path))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "the pure crate names what it may not know:\n{}", found.join("\n"));
}

#[test]
fn a_banned_crate_is_found_however_it_comes_in() {
    let manifest = r#"
        [dependencies]
        serde.workspace = true
        clock = { package = "tokio", version = "1" }
        nap.workspace = true
        [target.'cfg(unix)'.dependencies]
        crossbeam-channel = "0.5"
        [build-dependencies]
        helper = "1"
        [dev-dependencies]
        rand = "1"
    "#;
    let workspace = r#"
        [workspace.dependencies]
        serde = "1"
        nap = { package = "async-io", version = "2" }
    "#;
    let lock = r#"
        [[package]]
        name = "helper"
        dependencies = ["deeper 1.0.0"]
        [[package]]
        name = "deeper"
        version = "1.0.0"
        dependencies = ["getrandom", "helper"]
    "#;
    let parse = |text: &str| text.parse::<Table>().expect("it is TOML");
    let direct = direct_dependencies(&parse(manifest), &parse(workspace));
    let all = with_transitive(direct, &parse(lock));
    assert_eq!(banned_crates(&all), ["async-io", "crossbeam-channel", "getrandom", "tokio"]);
}

#[test]
fn a_forbidden_name_is_found_in_code_and_only_there() {
    let check = |path: &str, text: &str| impurities(&Source { path: path.into(), text: text.into() });
    let bad = "use std::collections::HashMap;\nfn f() {\n    let now = std::time::Instant::now();\n}\n";
    assert_eq!(check("core/src/x.rs", bad), ["1: HashMap", "3: std::time", "3: Instant"]);
    let grouped = "use std::{\n    fmt,\n    fs::{self, File},\n    sync::Arc,\n};";
    assert_eq!(check("core/src/x.rs", grouped), ["1: std::fs", "3: File"]);
    let in_tests = "#[cfg(test)]\nmod tests { fn f() { std::thread::sleep(SHORT); } }";
    assert_eq!(check("core/src/x.rs", in_tests), ["2: std::thread", "2: sleep"]);
    let good = "//! No HashMap, no std::time.\nconst NAME: &'static str = \"std::env, a File\"; // Instant\n\
                use std::collections::BTreeMap;\nlet mark = '\"'; /* sleep */ let raw = r#\"std::net \"\"#;";
    assert_eq!(check("core/src/x.rs", good), [""; 0]);
}

#[test]
fn the_test_switch_is_allowed_only_where_it_is_and_only_in_tests() {
    let check = |path: &str, text: &str| impurities(&Source { path: path.into(), text: text.into() });
    let switch = "#[cfg(test)]\nmod switch { thread_local! { static ACTIVE: u8 = 0; } }";
    assert_eq!(check(TEST_SWITCH.0, switch), [""; 0]);
    assert_eq!(check("core/src/other.rs", switch), ["2: thread_local", "2: static"]);
    assert_eq!(check(TEST_SWITCH.0, "static ACTIVE: u8 = 0;\n#[cfg(test)]\nmod tests {}"), ["1: static"]);
}
