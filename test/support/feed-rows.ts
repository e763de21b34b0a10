import { hash } from 'node:crypto';
import { FEED_COLUMNS } from '../../src/store/index.ts';

/** The columns of a row that identify a key, plus its name. */
export interface FeedRow {
  id: string;
  digest: string;
  previous: string | null;
  name: string;
}

/** A digest of the usual length. */
export const digestOf = (text: string) => hash('sha256', text, 'base64url');

/** The row of a key, as in the feed. @param gap follows each comma */
export function lineOf({ id, digest, previous, name }: FeedRow, gap = ''): Buffer {
  const values: Readonly<Record<string, unknown>> = {
    id,
    digest,
    previous_digest: previous,
    name,
    roles: '["VIEWER"]',
    permissions: '[]',
    public_id: 'abcdefghijkl',
    created_at: 1,
    checksum: '',
  };
  return Buffer.from(`[${FEED_COLUMNS.map((column) => JSON.stringify(values[column] ?? null)).join(`,${gap}`)}]`);
}
