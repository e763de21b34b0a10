import type { GraphQLError, ResponsePath } from 'graphql';

/**
 * The errors of one execution, by the place that became null for each (GraphQL, "Handling Execution Errors"). What
 * fails beneath a place that is null already is not said.
 */
export class FieldErrors {
  readonly errors: GraphQLError[] = [];
  readonly #nulled = new Set<ResponsePath | undefined>();

  /** @param path undefined if the whole answer becomes null */
  add(error: GraphQLError, path: ResponsePath | undefined): void {
    for (let place = path; place; place = place.prev) if (this.#nulled.has(place)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.errors.push(error);
  }
}
