//! The rules of style, as a test: what a reader of any file may count on. Every rule is shown to fail
//! on a bad sample.

mod source;

use std::fs;
use std::path::Path;

use source::{Source, code_only, is_word, root, rust_files};

const FOLDERS: [&str; 9] = [
    "actors/src",
    "actors/tests",
    "benches",
    "core/benches",
    "core/src",
    "core/tests",
    "examples",
    "src",
    "tests",
];

/// Files for people: their links must lead somewhere, and so must the paths they name.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CHANGELOG.md", "README.md"];

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_LETTERS_MAX: usize = 120;

/// What is left behind by unfinished work.
const UNFINISHED: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Beginnings of paths that exist on one machine only. They are put together here so that this file
/// does not contain them.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("/", "Users/"),
    concat!("C:", "\\Users"),
];

/// Everything that is wrong with a source file, as `path:line: rule`.
fn faults(file: &Source) -> Vec<String> {
    let code = code_only(&file.text);
    let mut faults = long_functions(&code);
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        faults.push((lines, format!("the file has {lines} lines, at most {FILE_LINES_MAX} are allowed")));
    }
    for (number, line) in file.text.lines().enumerate() {
        let letters = line.chars().count();
        if letters > LINE_LETTERS_MAX {
            faults.push((number + 1, format!("{letters} letters, at most {LINE_LETTERS_MAX} are allowed")));
        }
    }
    for (number, line) in code.lines().enumerate() {
        for mark in UNFINISHED.iter().filter(|mark| stands_alone(line, mark)) {
            faults.push((number + 1, format!("`{mark}` marks unfinished work")));
        }
    }
    if file.path.starts_with("core/src/") && !file.text.starts_with("//!") {
        faults.push((1, "the file does not begin with a `//!` comment that says what it is for".into()));
    }
    faults.extend(machine_paths(&file.text));
    faults.sort();
    faults.into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.path)).collect()
}

/// Whether the line contains `mark`, not as the end of a longer word.
fn stands_alone(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| !line[..at].ends_with(is_word))
}

fn machine_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS {
            // Inside an address or a relative path these are ordinary names.
            let is_absolute = |at: usize| !line[..at].ends_with(|one| is_word(one) || ".-~/}".contains(one));
            if line.match_indices(path).any(|(at, _)| is_absolute(at)) {
                found.push((number + 1, format!("`{path}` is a path of one machine")));
            }
        }
    }
    found
}

/// Functions that are too long, by the line on which they begin.
fn long_functions(code: &str) -> Vec<(usize, String)> {
    let mut long = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let name = code[at + 3..].split(|letter| !is_word(letter)).next().unwrap_or_default();
        if name.is_empty() || code[..at].ends_with(is_word) {
            continue;
        }
        let lines = lines_of_function(&code[at..]);
        if lines > FUNCTION_LINES_MAX {
            let begins = code[..at].matches('\n').count() + 1;
            let what = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX} are allowed");
            long.push((begins, what));
        }
    }
    long
}

/// Lines from `fn` to the brace that closes its body; a function without a body ends at its semicolon.
fn lines_of_function(code: &str) -> usize {
    let (mut lines, mut braces, mut brackets) = (1, 0, 0);
    for letter in code.chars() {
        match letter {
            '\n' => lines += 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {}
        }
        let ends_body = letter == '}' && braces == 0;
        let ends_declaration = letter == ';' && braces == 0 && brackets == 0;
        if ends_body || ends_declaration {
            break;
        }
    }
    lines
}

/// Links and named paths of a document that lead nowhere.
fn dead_links(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut dead = Vec::new();
    let anchors: Vec<String> = prose(text).filter_map(|(_, line)| anchor(line)).collect();
    for (number, line) in prose(text) {
        for target in link_targets(line) {
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let is_outside = ["http://", "https://", "mailto:"].iter().any(|one| target.starts_with(one));
            let is_dead = match path.is_empty() {
                true => !anchors.iter().any(|anchor| anchor == fragment),
                false => !exists(path),
            };
            if is_dead && !is_outside {
                dead.push(format!("{number}: {target}"));
            }
        }
        let named = line.split('`').skip(1).step_by(2).filter(|span| is_path_of_ours(span));
        dead.extend(named.filter(|path| !exists(path)).map(|path| format!("{number}: `{path}`")));
    }
    dead
}

/// The numbered lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((number + 1, line))
    })
}

/// The name under which a heading can be linked to.
fn anchor(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = heading.chars().filter(|letter| is_word(*letter) || " -".contains(*letter));
    Some(kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect())
}

fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Whether a code span names a file or folder of the repository, such as `core/src/lib.rs` or `config/`.
fn is_path_of_ours(span: &str) -> bool {
    let is_plain = span.chars().all(|letter| is_word(letter) || "/.-".contains(letter));
    let folders = ["actors/", "benches/", "config/", "core/", "examples/", "src/", "tests/", ".ci/"];
    is_plain && folders.iter().any(|folder| span.starts_with(folder))
}

#[test]
fn the_sources_are_tidy() {
    let files = rust_files(&FOLDERS);
    assert!(files.iter().any(|file| file.path == "tests/tidy.rs"), "the sources are found");
    let faults: Vec<String> = files.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{} rules are broken:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_documents_lead_somewhere_and_name_no_machine() {
    let mut faults = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).expect("the document is there");
        let dead = dead_links(&text, |path| root().join(Path::new(path)).exists());
        faults.extend(dead.into_iter().map(|target| format!("{document}:{target} leads nowhere")));
        let paths = machine_paths(&text).into_iter();
        faults.extend(paths.map(|(line, what)| format!("{document}:{line}: {what}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Applies the rules to a sample as if it were a file of the pure crate.
fn check(text: &str) -> Vec<String> {
    faults(&Source { path: "core/src/x.rs".into(), text: text.into() })
}

#[test]
fn a_tidy_file_has_no_faults() {
    let text = "//! Says what it is for. `todo!` in a comment is a word.\n\
                fn f(list: [u8; 2]) -> &'static str {\n    \"dbg!( { #[ignore] r\"\n}\n\
                const RAW: &str = r#\"fn g() { { {\"#;\nconst BRACE: char = '{';\n";
    assert_eq!(check(text), [""; 0]);
}

#[test]
fn long_files_functions_and_lines_are_found() {
    let file = "//! Long.\n".to_owned() + &"\n".repeat(FILE_LINES_MAX);
    assert_eq!(check(&file), ["core/src/x.rs:501: the file has 501 lines, at most 500 are allowed"]);
    let body = "    let brace = '}'; // }\n".repeat(FUNCTION_LINES_MAX - 1);
    let function =
        format!("//! Long.\ntrait T {{\n    fn short(&self, list: [u8; 3]);\n}}\nfn long() {{\n{body}}}\n");
    assert_eq!(check(&function), ["core/src/x.rs:5: `long` has 71 lines, at most 70 are allowed"]);
    let line = format!("//! {}\n", "ü".repeat(LINE_LETTERS_MAX - 3));
    assert_eq!(check(&line), ["core/src/x.rs:1: 121 letters, at most 120 are allowed"]);
}

#[test]
fn unfinished_work_missing_comments_and_machine_paths_are_found() {
    let text = "fn f() {\n    todo!()\n}\n#[ignore = \"later\"]\nfn g() { dbg!(1); unimplemented!(); not_todo!() }\n";
    let expected = [
        "core/src/x.rs:1: the file does not begin with a `//!` comment that says what it is for",
        "core/src/x.rs:2: `todo!` marks unfinished work",
        "core/src/x.rs:4: `#[ignore` marks unfinished work",
        "core/src/x.rs:5: `dbg!` marks unfinished work",
        "core/src/x.rs:5: `unimplemented!` marks unfinished work",
    ];
    assert_eq!(check(text), expected);
    let home = MACHINE_PATHS[0];
    let paths = format!("//! See {home}me and https://example.org{home}page.\n// \"{home}x\" ..{home}y\n");
    let expected = [1, 2].map(|line| format!("core/src/x.rs:{line}: `{home}` is a path of one machine"));
    assert_eq!(check(&paths), expected);
}

#[test]
fn links_and_paths_that_lead_nowhere_are_found() {
    let text = "# A title, with signs\n[a](there.md) [b](gone.md#x) [c](#a-title-with-signs) [d](#nowhere)\n\
                ```\n[e](gone.md)\n```\n`core/there.rs` `core/gone.rs` `core::gone` [f](https://example.org/x)\n";
    let exists = |path: &str| path.contains("there");
    assert_eq!(dead_links(text, exists), ["2: gone.md#x", "2: #nowhere", "6: `core/gone.rs`"]);
}
