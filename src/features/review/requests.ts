import { pageOf, permissions, stateFields } from '../../remote/requests.ts';
import {
  list,
  mapped,
  mutation,
  nullable,
  object,
  of,
  only,
  query,
  type Shape,
  text,
  yesOrNo,
} from '../../remote/shape.ts';
import type { ReviewedKey } from './reviewed-keys.ts';

const reviewed: Shape<ReviewedKey> = object({
  ...stateFields,
  effectivePermissions: permissions,
  answering: nullable(text),
  creator: of(
    'ancestors',
    mapped(list(only('name', nullable(text))), ([nearest]) => nearest ?? null),
  ),
});

/** The requests to servers. */
export const REQUESTS = {
  attestReview: mutation('attestReview', { input: 'AttestReviewInput!' }, yesOrNo),
  reviewedKeys: query('apiKeys', { first: 'Int!', after: 'String' }, pageOf(reviewed)),
};
