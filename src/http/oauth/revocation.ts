import type { Context } from 'hono';
import { HonoHead } from '../received.ts';
import { jsonReply, type Reply } from '../replies.ts';
import { applicationForm, type ConsentParts, originOf } from './endpoints.ts';
import { OAuthError } from './oauth-error.ts';

/**
 * Ends a key for the application that was given it (RFC 7009, section 2). The key itself proves that one may, so that a
 * client needs nothing else. One that is not valid is ended already.
 * @throws OAuthError
 */
export async function revokeKey(c: Context, parts: ConsentParts): Promise<Reply> {
  const form = await applicationForm(c);
  const clientId = parts.clients.idIn(form);
  const secret = form.need('token').trim();
  const created = form.get('created_keys');
  if (created !== undefined && created !== 'refuse')
    throw new OAuthError('invalid_request', 'The created_keys is refuse, or left out.');
  const { address, ...source } = originOf(c, parts);
  const ended = await parts.consent.end({ secret, clientId, sparesCreators: created === 'refuse' }, address);
  if (ended === 'ended') return jsonReply({});
  const reason = 'reason' in ended ? ended.reason : ended.refused;
  parts.refusals.add('revocation refused', { reason, address }, new HonoHead(c).notes);
  if (ended.refused === 'not given')
    throw new OAuthError(
      'unsupported_token_type',
      'No application was given this key: whoever manages keys deletes it.',
    );
  if (ended.refused === 'other client') throw new OAuthError('invalid_grant', 'This key was given to another client.');
  if (ended.refused === 'has created') {
    const keys = ended.created === 1 ? '1 API key, which ends' : `${ended.created} API keys, which end`;
    throw new OAuthError('has_created_keys', `This key has created ${keys} with it.`);
  }
  // It is answered as if it had been ended.
  parts.consent.countFailure(source);
  return jsonReply({});
}
