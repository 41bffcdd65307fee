declare module "jstat" {
  // CommonJS: in Node its one export is the default.
  const jstat: {
    readonly jStat: {
      readonly studentt: { inv(probability: number, degreesOfFreedom: number): number };
      readonly beta: { inv(probability: number, alpha: number, beta: number): number };
    };
  };
  export default jstat;
}
