import type { Vocabulary } from '../permissions/index.ts';
import type { AddedFields } from './field-types.ts';
import type { AddedMetric } from './metrics.ts';

/** Members of a feature that are read here. */
export interface FeatureOfFields extends Vocabulary {
  /** Its name. That of a plugin is the name of its package: it identifies values in stores, so never change it. */
  readonly name: string;
  /** The names of the features that it uses. */
  readonly needs?: readonly string[];
  /** Fields of keys, by their names. */
  readonly fields?: AddedFields;
  /** Its counters and gauges at `/metrics`. */
  readonly metrics?: readonly AddedMetric[];
}
