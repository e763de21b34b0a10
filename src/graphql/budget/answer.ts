import { writeLeaf } from '../execution/json-text.ts';
import { answerTooLarge } from './errors.ts';
import type { RequestBudget } from './request-budget.ts';

/**
 * Writes the data of an answer as JSON, in pieces between which the event loop may get a turn.
 * @throws GraphQLError COST_EXCEEDED if it is longer than the budget allows
 */
export async function writeData(
  data: Readonly<Record<string, unknown>> | null,
  budget: RequestBudget,
): Promise<string> {
  checkLength(data, budget.limits.characters);
  if (data === null) return 'null';
  const parts: string[] = [];
  for (const [name, value] of Object.entries(data)) {
    if (budget.turns.isOver) await budget.turns.next();
    budget.check();
    parts.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  }
  return `{${parts.join(',')}}`;
}

/** Adds up the texts before they are written: a short text that appears in many places takes no memory until then. */
function checkLength(value: unknown, limit: number): void {
  let length = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) length += writeLeaf(next)?.length ?? 0;
    else
      for (const [name, inner] of Object.entries(next)) {
        if (!Array.isArray(next)) length += name.length + 3;
        open.push(inner);
      }
    if (length > limit) throw answerTooLarge('characters', limit);
  }
}
