/** Metrics with their values, as processes tell them to one another. */
export interface Sample {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** How the values of several processes become one. */
  readonly aggregator: string;
  readonly values: readonly { readonly value: number; readonly labels: object }[];
}
