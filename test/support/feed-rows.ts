import { hash } from 'node:crypto';
import { FEED_COLUMNS } from '../../src/store/index.ts';

/** The columns that find a key, and its name. */
export interface FeedRow {
  id: string;
  digest: string;
  previous: string | null;
  name: string;
}

/** A text that is as long as a digest. */
export const digestOf = (text: string) => hash('sha256', text, 'base64url');

/** The row of a key as the feed has it. @param gap follows each comma */
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
