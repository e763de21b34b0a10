import { printable } from '../basics/index.ts';
import { invalidFeature } from './failures.ts';
import { snake } from './names.ts';

/** A counter or a gauge of a feature. */
export interface AddedMetric {
  /** It begins with the name of the package in the form of metrics: `svc_api_team_` for `svc-api-team`. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: readonly string[];
  /** The present values of this process, each with its labels. The values of several processes are added up. */
  readonly read: () => Iterable<MeasuredValue> | Promise<Iterable<MeasuredValue>>;
}

/** A value of a metric, with its labels. */
export type MeasuredValue = readonly [value: number, labels?: Readonly<Record<string, string>>];

/** Checks the names of metrics of a plugin. @throws KeysError FEATURE_INVALID */
export function requireMetrics(feature: string, metrics: readonly AddedMetric[]): void {
  const problem = metrics.map((metric) => problemOf(metric, feature, metrics)).find((each) => each);
  if (problem !== undefined) throw invalidFeature(feature, problem);
}

/** The problem of the name or of a label of a metric. */
function problemOf(
  { name, labels = [] }: AddedMetric,
  feature: string,
  all: readonly AddedMetric[],
): string | undefined {
  const prefix = `${snake(feature)}_`;
  if (!name.startsWith(prefix) || !/^[a-z][a-z0-9_]{2,99}$/.test(name))
    return `Its metric "${printable(name)}" must begin with "${prefix}", and contain only lower-case letters, digits and "_".`;
  if (all.filter((each) => each.name === name).length > 1) return `It has two metrics "${name}".`;
  const label = labels.find((each) => !/^[a-z][a-z0-9_]{0,39}$/.test(each));
  return label === undefined
    ? undefined
    : `Its metric "${name}" has a label "${printable(label)}", which is not a valid name.`;
}
