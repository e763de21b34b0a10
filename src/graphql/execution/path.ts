/** The place of a field or an item in an answer, as graphql-js has it, with what says which of two places comes first. */
export interface Path {
  readonly prev: Path | undefined;
  readonly key: string | number;
  readonly typename: string | undefined;
  /** The index of the field in its selection, or of the item in its list. */
  readonly position: number;
}

/** The steps from the root to a place. */
export function stepsTo(path: Path): Path[] {
  const steps: Path[] = [];
  for (let step: Path | undefined = path; step; step = step.prev) steps.push(step);
  return steps.toReversed();
}
