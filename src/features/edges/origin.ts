import type { Limit } from '../../keys/basics/index.ts';
import { type ApiKey, appliedLimits } from '../../keys/key/index.ts';
import type { FeatureParts, KeysService } from '../../keys/service/index.ts';
import { Edges } from './edges.ts';
import { type EdgeReport, EdgeReports } from './reports.ts';

/** A server that edges follow, as `keys.feature(Origin)`. */
export class Origin {
  /** The edges that this process sends changes to. */
  readonly edges: Edges;
  readonly #reports: EdgeReports;
  readonly #parts: Pick<FeatureParts, 'repository' | 'catalog'>;

  constructor(parts: FeatureParts) {
    this.#parts = parts;
    this.edges = parts.shared(Edges);
    this.#reports = parts.shared(EdgeReports);
  }

  /** Writes the report of a key's edge, within plausible bounds: see `EdgeReports`. @throws KeysError STORE_… */
  takeReport(report: EdgeReport, edge: Pick<ApiKey, 'id' | 'name'>): Promise<void> {
    return this.#reports.take(report, edge, this.#parts.catalog);
  }

  /** The limits of the keys among these ids that exist, by id. @throws KeysError STORE_… */
  async limitsOf(ids: readonly string[]): Promise<Map<string, readonly Limit[]>> {
    const { repository, catalog } = this.#parts;
    const found = await repository.findBy('id', ids);
    return new Map(found.map(({ id, limits }) => [id, appliedLimits(limits, catalog.defaultLimits)]));
  }
}

/** The edges that this process sends changes to. */
export function edgesOf(keys: Pick<KeysService, 'feature'>): Edges {
  return keys.feature(Origin).edges;
}
