//! Figures as tables for people or as one JSON document for programs.

use comfy_table::{CellAlignment, presets};
use serde_json::{Map, Value as Json, json};

use super::Options;

/// One figure or word of a table.
#[derive(Clone, Debug)]
pub enum Value {
    Text(String),
    /// A number with so many decimals.
    Number(f64, usize),
}

#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    notes: Vec<String>,
}

#[derive(Debug)]
pub struct Report {
    name: &'static str,
    options: Options,
    tables: Vec<Table>,
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl Value {
    pub fn count(number: impl Into<u64>) -> Value {
        Value::Number(number.into() as f64, 0)
    }

    fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number, decimals) => group_thousands(&format!("{number:.decimals$}")),
        }
    }

    fn json(&self) -> Json {
        match self {
            Value::Text(text) => json!(text),
            Value::Number(number, _) => json!(number),
        }
    }
}

fn group_thousands(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Table {
        Table { title: title.into(), columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }

    pub fn row(&mut self, row: Vec<Value>) {
        assert_eq!(row.len(), self.columns.len(), "a row has a value for each column");
        self.rows.push(row);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn print(&self) {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::ASCII_MARKDOWN).set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(Value::text));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let is_number = self.rows.iter().any(|row| matches!(row[index], Value::Number(..)));
            let alignment = if is_number { CellAlignment::Right } else { CellAlignment::Left };
            column.set_cell_alignment(alignment);
        }
        println!("\n{}\n\n{table}", self.title);
        for note in &self.notes {
            println!("  {note}");
        }
    }

    fn json(&self) -> Json {
        let object = |row: &Vec<Value>| -> Json {
            let fields = self.columns.iter().zip(row);
            Json::Object(
                fields.map(|(name, value)| ((*name).to_owned(), value.json())).collect::<Map<_, _>>(),
            )
        };
        json!({
            "title": self.title,
            "rows": self.rows.iter().map(object).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

impl Report {
    pub fn new(name: &'static str, options: Options) -> Report {
        if !options.json {
            println!("{name}{}", if options.quick { " (quick)" } else { "" });
        }
        Report { name, options, tables: Vec::new() }
    }

    /// Tables for people appear as soon as they are complete.
    pub fn add(&mut self, table: Table) {
        if !self.options.json {
            table.print();
        }
        self.tables.push(table);
    }

    pub fn finish(self) {
        if self.options.json {
            let tables: Vec<Json> = self.tables.iter().map(Table::json).collect();
            println!("{:#}", json!({ "bench": self.name, "quick": self.options.quick, "tables": tables }));
        }
    }
}
