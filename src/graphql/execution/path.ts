import type { ResponsePath } from 'graphql';

/** The place of a field or an item in an answer, with what says which of two places comes first. */
export interface Path {
  readonly prev: Path | undefined;
  readonly key: string | number;
  readonly typename: string | undefined;
  /** The index of the field in its selection, or of the item in its list. */
  readonly position: number;
}

/** What resolvers see of a path has the same members in graphql-js. */
export function responsePathOf(path: Path): ResponsePath {
  return path as unknown as ResponsePath;
}

/** The steps from the root to a place. */
export function stepsTo(path: Path): Path[] {
  const steps: Path[] = [];
  for (let step: Path | undefined = path; step; step = step.prev) steps.push(step);
  return steps.toReversed();
}
