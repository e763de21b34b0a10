import {
  type DocumentNode,
  getOperationAST,
  GraphQLError,
  Kind,
  Lexer,
  OperationTypeNode,
  parse,
  Source,
  TokenKind,
} from 'graphql';
import { withoutStackTrace } from '../keys/errors.ts';
import { checkFieldLimits } from './field-limits.ts';
import { checkFragments } from './fragments.ts';
import { limitExceeded } from './limit-exceeded.ts';
import { checkRepeatedFields } from './repeated-fields.ts';

/** Limits of a document. The introspection query of common tools has a depth of 15 and some 230 fields. */
export const DOCUMENT_LIMITS = { tokens: 5000, nesting: 100, nameLength: 256 };

/**
 * Parses a document after checking its size, so that it cannot exhaust the parser's stack or the validator's time.
 * @throws GraphQLError if it has a syntax error, exceeds a limit, or has no such operation
 */
export function readDocument(text: string, operationName: string | null): DocumentNode {
  const source = new Source(text, 'GraphQL request');
  const document = withoutStackTrace(() => {
    checkSize(source);
    return parse(source);
  });
  withoutStackTrace(() => checkFragments(document));
  checkFieldLimits(document);
  checkRepeatedFields(document);
  const operation = getOperationAST(document, operationName);
  if (operation?.operation === OperationTypeNode.SUBSCRIPTION) throw badRequest('Subscriptions are not supported.');
  if (!operation && document.definitions.some(({ kind }) => kind === Kind.OPERATION_DEFINITION)) {
    throw badRequest(
      operationName === null
        ? 'The document has several operations: pass operationName.'
        : 'The document has no operation of that name.',
    );
  }
  return document;
}

/** Whether the operation that is to be executed is a mutation. */
export function isMutation(document: DocumentNode, operationName: string | null): boolean {
  return getOperationAST(document, operationName)?.operation === OperationTypeNode.MUTATION;
}

/** The name of the operation that is to be executed; undefined if it has none. */
export function operationNameIn(document: DocumentNode, operationName: string | null): string | undefined {
  return getOperationAST(document, operationName)?.name?.value;
}

function checkSize(source: Source): void {
  const lexer = new Lexer(source);
  let tokens = 0;
  let nesting = 0;
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    tokens += 1;
    if (token.kind === TokenKind.BRACE_L || token.kind === TokenKind.BRACKET_L || token.kind === TokenKind.PAREN_L)
      nesting += 1;
    else if (token.kind === TokenKind.BRACE_R || token.kind === TokenKind.BRACKET_R || token.kind === TokenKind.PAREN_R)
      nesting -= 1;
    // Each error may say it again.
    if (token.kind === TokenKind.NAME && token.end - token.start > DOCUMENT_LIMITS.nameLength)
      throw limitExceeded('characters in a name', DOCUMENT_LIMITS.nameLength);
    if (tokens > DOCUMENT_LIMITS.tokens) throw limitExceeded('tokens', DOCUMENT_LIMITS.tokens);
    if (nesting > DOCUMENT_LIMITS.nesting) throw limitExceeded('levels of nesting', DOCUMENT_LIMITS.nesting);
  }
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } });
}
