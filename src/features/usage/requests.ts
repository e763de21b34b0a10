import { list, nullable, number, object, only, query, time } from '../../remote/shape.ts';

/** The requests to servers. */
export const REQUESTS = {
  keyUsage: query(
    'apiKey',
    { id: 'ID!', from: 'DateTime!', to: 'DateTime!', by: 'UsagePeriod!' },
    nullable(
      only(
        'usage(from: $from, to: $to, by: $by)',
        nullable(list(object({ start: time, accepted: number, forbidden: number, limited: number, refused: number }))),
      ),
    ),
  ),
};
