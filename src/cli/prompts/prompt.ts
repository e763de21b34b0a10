import { CliError } from '../errors.ts';
import { DEFAULT_COLUMNS } from '../terminal.ts';

/** An item to choose. */
export interface Choice {
  readonly id: string;
  readonly name: string;
  /** Further details to show. */
  readonly details: string;
}

export interface FoundChoices {
  readonly choices: readonly Choice[];
  /** True if more match. */
  readonly hasMore: boolean;
}

/** A list from which several items can be chosen, one by one. Chosen items stay chosen, whatever the list shows. */
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

  /** Moves the active choice by an offset, within the list. */
  move(offset: number): void {
    this.#active = Math.max(0, Math.min(this.#active + offset, this.#found.choices.length - 1));
  }

  /** Chooses the active item, or unchooses it. */
  toggle(): void {
    const choice = this.#found.choices[this.#active];
    if (choice && !this.#chosen.delete(choice.id)) this.#chosen.set(choice.id, choice);
  }

  /** A number of choices, with the active one in the middle if possible. */
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
  /** True if it is chosen at first. */
  checked?: boolean;
}

/** Questions to the user, on stderr, since stdout is for the secret alone. Each returns the answer. */
export interface Prompts {
  /** @param validate returns true, or the problem with an answer */
  input(question: { message: string; validate?: (text: string) => true | string }): Promise<string>;
  /** Asks without echoing the input. */
  secret(message: string): Promise<string>;
  /** Yes or no; no is the default. */
  confirm(message: string): Promise<boolean>;
  select<Value>(question: { message: string; choices: readonly Option<Value>[] }): Promise<Value>;
  checkbox<Value>(question: { message: string; choices: readonly Option<Value>[] }): Promise<Value[]>;
  /** One of many choices, found by typing. */
  search<Value>(question: { message: string; source: (term?: string) => Option<Value>[] }): Promise<Value>;
  searchMany(question: ManyQuestion): Promise<readonly Choice[]>;
}

export interface ManyQuestion {
  message: string;
  /** The choices before anything is typed. */
  found: FoundChoices;
  /** Finds the choices for a typed text. Its error is shown. */
  search: (term: string) => Promise<FoundChoices>;
}

/** The most lines of a prompt besides the choices of a list: its question, hints and notes, some wrapped. */
const LINES_AROUND_LIST = 7;

/** How many choices of a list fit the screen: a higher list can't be redrawn. */
export function listSize(): number {
  return Math.max(1, Math.min(7, screenHeight() - LINES_AROUND_LIST));
}

/** True if there is no room for hints. */
export function isLowScreen(): boolean {
  return screenHeight() <= LINES_AROUND_LIST;
}

/** The width of the terminal for prompts, in columns. */
export function screenWidth(): number {
  return process.stderr.columns || DEFAULT_COLUMNS;
}

function screenHeight(): number {
  return process.stderr.rows || 24;
}

export function cancelled(): CliError {
  return new CliError('CANCELLED', 'Cancelled: nothing was changed.');
}

/** The result of a prompt's `validate`: true, or the problem. */
export function verdict(issue: { message: string } | undefined): true | string {
  return issue?.message ?? true;
}
