import type { GraphQLError } from 'graphql';
import { type Path, stepsTo } from './path.ts';

/**
 * The errors of one execution, by the place that became null for each (GraphQL, "Handling Execution Errors"). What
 * fails beneath a place that is null already is not said.
 */
export class FieldErrors {
  readonly #failed: { error: GraphQLError; path: Path | undefined }[] = [];
  readonly #nulled = new Set<Path | undefined>();

  /** @param path undefined if the whole answer becomes null */
  add(error: GraphQLError, path: Path | undefined): void {
    if (this.#isNulled(path)) return;
    this.#nulled.add(path);
    this.#failed.push({ error, path });
  }

  /** In the order of the fields and items, whichever failed first; as they came beneath a place that became null. */
  inOrder(): GraphQLError[] {
    if (this.#failed.length < 2) return this.#failed.map(({ error }) => error);
    const located = this.#failed.map(({ error, path }) => ({ error, steps: path ? stepsTo(path) : [] }));
    return located.toSorted((one, other) => this.#compare(one.steps, other.steps)).map(({ error }) => error);
  }

  #compare(one: readonly Path[], other: readonly Path[]): number {
    if (this.#nulled.has(undefined)) return 0;
    for (const [index, step] of one.entries()) {
      const otherStep = other[index];
      if (!otherStep) return 0;
      if (step.key !== otherStep.key) return step.position - otherStep.position;
      if (this.#nulled.has(step) || this.#nulled.has(otherStep)) return 0;
    }
    return 0;
  }

  #isNulled(path: Path | undefined): boolean {
    for (let place = path; place; place = place.prev) if (this.#nulled.has(place)) return true;
    return this.#nulled.has(undefined);
  }
}
