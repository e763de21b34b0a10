import { CliError } from '../errors.ts';
import { DEFAULT_COLUMNS } from '../terminal.ts';

/** Something to choose. */
export interface Choice {
  readonly id: string;
  readonly name: string;
  /** What else to show of it. */
  readonly details: string;
}

export interface FoundChoices {
  readonly choices: readonly Choice[];
  /** Whether more match than these. */
  readonly hasMore: boolean;
}

/** A list of which several can be chosen, one by one. What is chosen stays so, whatever the list shows. */
export class ChoiceList {
  #found: FoundChoices;
  #active = 0;
  readonly #chosen = new Map<string, Choice>();

  constructor(found: FoundChoices) {
    this.#found = found;
  }

  get chosen(): readonly Choice[] {
    return [...this.#chosen.values()];
  }

  get hasMore(): boolean {
    return this.#found.hasMore;
  }

  show(found: FoundChoices): void {
    this.#found = found;
    this.#active = 0;
  }

  /** Makes another choice the active one, so many further down, as far as there are any. */
  move(offset: number): void {
    this.#active = Math.max(0, Math.min(this.#active + offset, this.#found.choices.length - 1));
  }

  /** Chooses the active choice, or no longer. */
  toggle(): void {
    const choice = this.#found.choices[this.#active];
    if (choice && !this.#chosen.delete(choice.id)) this.#chosen.set(choice.id, choice);
  }

  /** So many choices, with the active one in the middle where possible. */
  window(size: number): { choice: Choice; isActive: boolean; isChosen: boolean }[] {
    const { choices } = this.#found;
    const start = Math.max(0, Math.min(this.#active - Math.floor(size / 2), choices.length - size));
    return choices.slice(start, start + size).map((choice, index) => ({
      choice,
      isActive: start + index === this.#active,
      isChosen: this.#chosen.has(choice.id),
    }));
  }
}

export interface Option<Value> {
  name: string;
  value: Value;
  description?: string | undefined;
  /** Whether it is chosen before the user says anything. */
  checked?: boolean;
}

/** Questions to the user, on stderr: stdout is for the secret alone. Each returns the answer. */
export interface Prompts {
  /** @param validate returns true, or what is wrong with an answer */
  input(question: { message: string; validate?: (text: string) => true | string }): Promise<string>;
  /** Asks without echoing what is typed. */
  secret(message: string): Promise<string>;
  /** Yes or no, which is the default. */
  confirm(message: string): Promise<boolean>;
  select<Value>(question: { message: string; choices: readonly Option<Value>[] }): Promise<Value>;
  checkbox<Value>(question: { message: string; choices: readonly Option<Value>[] }): Promise<Value[]>;
  /** One of many, which are found by what is typed. */
  search<Value>(question: { message: string; source: (term?: string) => Option<Value>[] }): Promise<Value>;
  searchMany(question: ManyQuestion): Promise<readonly Choice[]>;
}

export interface ManyQuestion {
  message: string;
  /** What there is to choose before anything is typed. */
  found: FoundChoices;
  /** Finds the choices for what was typed. Its error is shown. */
  search: (term: string) => Promise<FoundChoices>;
}

/** How many lines a prompt may take besides the choices of a list: its question, hints and notes, some wrapped. */
const LINES_AROUND_LIST = 7;

/** How many choices of a list fit the screen: what is higher than it can't be drawn again. */
export function listSize(): number {
  return Math.max(1, Math.min(7, screenHeight() - LINES_AROUND_LIST));
}

/** Whether there is no room for hints. */
export function isLowScreen(): boolean {
  return screenHeight() <= LINES_AROUND_LIST;
}

/** The width of the terminal that prompts are on, in columns. */
export function screenWidth(): number {
  return process.stderr.columns || DEFAULT_COLUMNS;
}

function screenHeight(): number {
  return process.stderr.rows || 24;
}

export function cancelled(): CliError {
  return new CliError('CANCELLED', 'Cancelled: nothing was changed.');
}

/** The result for a prompt's `validate`: true, or what is wrong. */
export function verdict(issue: { message: string } | undefined): true | string {
  return issue?.message ?? true;
}
