import { answerTooLarge } from './errors.ts';
import type { RequestBudget } from './request-budget.ts';

/** How many errors an answer may have. */
export const MAX_ERRORS = 1000;

/** Checks that an answer has not too many errors. @throws GraphQLError COST_EXCEEDED */
export function checkErrors(errors: readonly unknown[]): void {
  if (errors.length > MAX_ERRORS) throw answerTooLarge('errors', MAX_ERRORS);
}

/** How long an answer gets, in characters. Once there are too many, no resolver starts any more. */
export class AnswerLength {
  readonly #budget: RequestBudget;
  readonly #limit: number;
  #characters = 0;

  constructor(budget: RequestBudget) {
    this.#budget = budget;
    this.#limit = budget.limits.characters;
  }

  add(characters: number): void {
    this.#characters += characters;
    if (this.#characters > this.#limit && !this.#budget.isAbandoned)
      this.#budget.abandon(answerTooLarge('characters', this.#limit));
  }

  /** Adds those of a value as JSON. */
  addValue(value: unknown): void {
    this.add(lengthOf(value, this.#limit));
  }

  /** @throws GraphQLError COST_EXCEEDED if there are too many */
  check(): void {
    if (this.#characters > this.#limit) throw answerTooLarge('characters', this.#limit);
  }
}

/** So many characters of an answer are written before it looks whether its turn is over. */
const PIECE = 50_000;

/** Writes the data of an answer as JSON, in pieces between which the event loop may get a turn. */
export function writeData(
  data: Readonly<Record<string, unknown>> | null,
  budget: RequestBudget,
): string | Promise<string> {
  return data === null || !budget.turns.isTimeUp ? JSON.stringify(data) : writeInPieces(data, budget);
}

/** What is short is written at once: to wait would keep finished answers in memory. */
async function writeInPieces(data: Readonly<Record<string, unknown>>, budget: RequestBudget): Promise<string> {
  const parts: string[] = [];
  let characters = 0;
  for (const [name, value] of Object.entries(data)) {
    if (characters > PIECE && budget.turns.isTimeUp) {
      await budget.turns.next();
      characters = 0;
    }
    const part = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
    characters += part.length;
    parts.push(part);
  }
  return `{${parts.join(',')}}`;
}

/** Adds up the characters of a value as JSON, until they are over a limit. */
function lengthOf(value: unknown, limit: number): number {
  let length = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && length <= limit) {
    const next = open.pop();
    if (typeof next === 'string') length += next.length + 2;
    else if (typeof next !== 'object' || next === null) length += 4;
    else
      for (const [name, inner] of Object.entries(next)) {
        if (!Array.isArray(next)) length += name.length + 3;
        open.push(inner);
      }
  }
  return length;
}
