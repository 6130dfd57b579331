//! What the tests that read the sources share: finding the files, and seeing only their code.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path from the root of the repository, with `/` between the parts, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    pub path: String,
    pub text: String,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below these folders, in the order of their paths. A folder that is not there has none.
pub fn rust_files(folders: &[&str]) -> Vec<Source> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut files);
    }
    files.sort();
    files.into_iter().map(|path| read(&path)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a folder of the repository can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read(path: &Path) -> Source {
    let relative = path.strip_prefix(root()).expect("the file is in the repository");
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let text = fs::read_to_string(path).expect("a source file is text");
    Source { path: parts.join("/"), text }
}

/// The text with comments and the contents of literals blanked out, line by line as before: what is
/// left is code.
pub fn code_only(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let end = skipped_from(&letters, at);
        if end == at {
            code.push(letters[at]);
            at += 1;
            continue;
        }
        let kept = |letter: &char| if *letter == '\n' { '\n' } else { ' ' };
        code.extend(letters[at..end].iter().map(kept));
        at = end;
    }
    code
}

/// Where the comment or literal that begins here ends; `at` itself if none begins here.
fn skipped_from(letters: &[char], at: usize) -> usize {
    let next = |offset: usize| letters.get(at + offset).copied().unwrap_or('\0');
    let in_word = at > 0 && is_word(letters[at - 1]);
    match letters[at] {
        '/' if next(1) == '/' => find(letters, at, |one| one == '\n'),
        '/' if next(1) == '*' => end_of_block_comment(letters, at),
        '"' => end_of_text(letters, at + 1),
        'r' if !in_word || letters[at - 1] == 'b' => end_of_raw_text(letters, at).unwrap_or(at),
        '\'' if next(1) == '\\' => find(letters, at + 3, |one| one == '\'') + 1,
        '\'' if next(2) == '\'' => at + 3,
        _ => at,
    }
    .min(letters.len())
}

pub fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn find(letters: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    let found = letters.iter().skip(from).position(|letter| wanted(*letter));
    found.map_or(letters.len(), |offset| from + offset)
}

fn end_of_block_comment(letters: &[char], at: usize) -> usize {
    let (mut depth, mut here) = (0, at);
    while here < letters.len() {
        match (letters[here], letters.get(here + 1)) {
            ('/', Some('*')) => (depth, here) = (depth + 1, here + 1),
            ('*', Some('/')) => (depth, here) = (depth - 1, here + 1),
            _ => {}
        }
        here += 1;
        if depth == 0 {
            break;
        }
    }
    here
}

fn end_of_text(letters: &[char], from: usize) -> usize {
    let mut here = from;
    while here < letters.len() && letters[here] != '"' {
        here += if letters[here] == '\\' { 2 } else { 1 };
    }
    here + 1
}

/// The end of `r"…"` or `r#"…"#`; `None` if this is a plain word or a raw name.
fn end_of_raw_text(letters: &[char], at: usize) -> Option<usize> {
    let quote = find(letters, at + 1, |one| one != '#');
    let hashes = quote - at - 1;
    if letters.get(quote) != Some(&'"') {
        return None;
    }
    let closes = |here: usize| {
        let after = letters.iter().skip(here + 1).take(hashes);
        letters[here] == '"' && after.filter(|letter| **letter == '#').count() == hashes
    };
    let end = (quote + 1..letters.len()).find(|here| closes(*here));
    Some(end.map_or(letters.len(), |end| end + hashes + 1))
}
