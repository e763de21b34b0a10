import { GraphQLError } from 'graphql';

const LIMIT = 3;
const backups = [{ id: '1', requestedBy: null }];

export const resolvers = {
  Query: {
    backups: () => backups,
  },
  Mutation: {
    createBackup(_parent, _args, { principal }) {
      // A GraphQLError keeps its text; the client would see any other error as "Internal server error".
      if (backups.length >= LIMIT)
        throw new GraphQLError(`There are ${LIMIT} backups already.`, { extensions: { code: 'TOO_MANY_BACKUPS' } });
      const backup = { id: String(backups.length + 1), requestedBy: principal.apiKey.name };
      backups.push(backup);
      return backup;
    },
  },
};
