-- Scalar expressions such as 'abs(u - v) ^ 2' are read into postfix programs, which run over arrays. No text is executed
-- as SQL. A program is an array of texts: u, v, literals after =, and names of functions.

-- As compile_expression in udfs/expression.py.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_read_expression(caller text, expression text, operands integer)
RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    functions CONSTANT text[] := @operators.FUNCTIONS@;
    arities CONSTANT integer[] := @operators.OPERANDS@;
    symbols CONSTANT text[] := @operators.SYMBOLS@;
    precedences CONSTANT integer[] := @operators.PRECEDENCES@;
    negate CONSTANT integer := array_position(functions, 'neg');
    power CONSTANT integer := array_position(functions, 'pow');
    compare CONSTANT integer := precedences[array_position(functions, 'lt')];
    program text[] := '{}';
    waiting integer[] := '{}'; -- positions of functions; called ones below 0; 0 is an open parenthesis
    arguments integer[] := '{}'; -- complete ones behind each open parenthesis
    rest text := expression;
    token text;
    operator integer;
    top integer;
    wanted integer;
    wants_operand boolean := true;
BEGIN
    IF octet_length(expression) > @descriptors.MAX_TEXT@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @descriptors.TEXT_TOO_LONG@, octet_length(expression), @descriptors.MAX_TEXT@
        );
    END IF;
    operator := array_position(functions, expression);
    IF arities[operator] = 1 THEN -- a function's name alone: of u
        RETURN ARRAY['u', expression];
    END IF;
    LOOP
        rest := ltrim(rest, ' ');
        EXIT WHEN rest = '';
        IF cardinality(waiting) >= @expression.MAX_OPERATIONS@ - 1 OR cardinality(program) >= @expression.MAX_OPERATIONS@ - 1
        THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.EXPRESSION_TOO_LONG@, 0);
        END IF;
        IF wants_operand THEN
            token := substring(rest FROM '^(?:[(]|-|[0-9.](?:[0-9.e]|(?<=e)[-+])*|[A-Za-z_][A-Za-z0-9_]*)');
            IF token IS NULL THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
            END IF;
            rest := substr(rest, length(token) + 1);
            IF token = '(' THEN
                waiting := waiting || 0;
                arguments := arguments || 1;
            ELSIF token = '-' THEN
                waiting := waiting || negate;
            ELSIF token ~ '^[0-9.]' THEN
                IF length(token) > @expression.MAX_DIGITS@ THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.EXPRESSION_TOO_LONG@, 0);
                ELSIF token !~ '^([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?$' THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
                END IF;
                IF rest LIKE 'j%' THEN
                    token := token || 'j';
                    rest := substr(rest, 2);
                END IF;
                program := program || ('=' || token);
                wants_operand := false;
            ELSIF token = 'not' AND coalesce(
                precedences[abs(waiting[cardinality(waiting)])] <= precedences[array_position(functions, 'not')]
                OR waiting[cardinality(waiting)] <= 0, true
            ) THEN
                waiting := waiting || array_position(functions, 'not');
            ELSIF token = ANY (symbols) THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
            ELSIF token IN ('false', 'true', 'inf', 'nan') THEN
                program := program || ('=' || CASE token WHEN 'false' THEN '0' WHEN 'true' THEN '1' ELSE token END);
                wants_operand := false;
            ELSIF token IN ('u', 'v') THEN
                IF token = 'v' AND operands < 2 THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.MISSING_OPERAND@, 0);
                END IF;
                program := program || token;
                wants_operand := false;
            ELSE
                operator := array_position(functions, token);
                IF operator IS NULL THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.UNKNOWN_NAME@, 0);
                END IF;
                rest := ltrim(rest, ' ');
                IF rest NOT LIKE '(%' THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
                END IF;
                rest := substr(rest, 2);
                waiting := waiting || -operator || 0;
                arguments := arguments || 1;
            END IF;
        ELSIF rest ~ '^[,)]' THEN
            WHILE waiting[cardinality(waiting)] > 0 LOOP
                program := program || functions[waiting[cardinality(waiting)]];
                waiting := trim_array(waiting, 1);
            END LOOP;
            top := cardinality(arguments);
            wanted := CASE
                WHEN waiting[cardinality(waiting) - 1] < 0 THEN arities[-waiting[cardinality(waiting) - 1]] ELSE 1
            END;
            IF top = 0 OR arguments[top] > wanted - (rest LIKE ',%')::integer OR (rest LIKE ')%' AND arguments[top] < wanted) THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
            END IF;
            wants_operand := rest LIKE ',%';
            IF wants_operand THEN
                arguments[top] := arguments[top] + 1;
            ELSE
                arguments := trim_array(arguments, 1);
                waiting := trim_array(waiting, 1);
                IF waiting[cardinality(waiting)] < 0 THEN
                    program := program || functions[-waiting[cardinality(waiting)]];
                    waiting := trim_array(waiting, 1);
                END IF;
            END IF;
            rest := substr(rest, 2);
        ELSE
            token := substring(rest FROM '^(?:[A-Za-z_][A-Za-z0-9_]*|[<>=!]=|.)');
            rest := substr(rest, length(token) + 1);
            operator := array_position(symbols, token);
            IF operator IS NULL OR token = 'not' THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
            END IF;
            LOOP
                top := waiting[cardinality(waiting)];
                EXIT WHEN coalesce(top <= 0 OR operator = power OR precedences[top] < precedences[operator], true);
                IF precedences[operator] = compare AND precedences[top] = compare THEN
                    PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
                END IF;
                program := program || functions[top];
                waiting := trim_array(waiting, 1);
            END LOOP;
            waiting := waiting || operator;
            wants_operand := true;
        END IF;
    END LOOP;
    IF wants_operand OR 0 = ANY (waiting) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.BAD_EXPRESSION@, 0);
    END IF;
    FOR place IN REVERSE cardinality(waiting)..1 LOOP
        program := program || functions[waiting[place]];
    END LOOP;
    RETURN program;
END
$$;

-- A program for real numbers or integers: the signs of literals are applied, and literals are in range. A function that
-- is not defined for these numbers is an error.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_program(caller text, expression text, operands integer, numbers text)
RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    functions CONSTANT text[] := @operators.FUNCTIONS@;
    arities CONSTANT integer[] := @operators.OPERANDS@;
    program text[] := '{}';
    token text;
    last text;
    depth integer := 0;
BEGIN
    FOREACH token IN ARRAY @extschema@.sparseeinsum_read_expression(caller, expression, operands) LOOP
        last := program[cardinality(program)];
        IF token = 'neg' AND last LIKE '=%' AND last NOT LIKE '%j' THEN
            token := CASE WHEN last = '=0' THEN last WHEN last LIKE '=-%' THEN '=' || substr(last, 3) ELSE '=-' || substr(last, 2) END;
            program := trim_array(program, 1);
            depth := depth - 1;
        END IF;
        program := program || token;
        depth := depth + 1 - CASE WHEN token LIKE '=%' OR token IN ('u', 'v') THEN 0
            ELSE arities[array_position(functions, token)] END;
        IF depth > @expression.MAX_DEPTH@ THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.EXPRESSION_TOO_LONG@, 0);
        END IF;
    END LOOP;
    FOR place IN 1..cardinality(program) LOOP
        token := program[place];
        CONTINUE WHEN token IN ('u', 'v');
        IF token LIKE '=%' THEN
            program[place] := '=' || @extschema@.sparseeinsum_canonical(caller, substr(token, 2), numbers);
        ELSIF numbers = 'integer' AND token = ANY (@operators.NOT_OF_INTEGERS@) THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @integers.NOT_OF_INTEGERS@, 0);
        ELSIF token = ANY (@operators.NOT_PORTABLE@) THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.NOT_PORTABLE@, 0);
        END IF;
    END LOOP;
    RETURN program;
END
$$;

-- A literal in the form that sparseeinsum_literal reads.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_canonical(caller text, literal text, numbers text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    is_negative boolean := literal LIKE '-%';
    digits text := ltrim(literal, '-');
    value float8;
BEGIN
    IF literal LIKE '%j' THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @expression.IMAGINARY_LITERAL@, 0);
    ELSIF numbers = 'integer' THEN
        IF literal !~ '^-?[0-9]+$' OR literal::numeric NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @integers.NOT_WHOLE@, 0);
        END IF;
        RETURN literal;
    ELSIF digits IN ('inf', 'nan') THEN
        RETURN literal;
    END IF;
    value := @extschema@.sparseeinsum_number_of(digits);
    RETURN CASE WHEN is_negative THEN -value ELSE value END;
END
$$;

-- Run a program over arrays of equal length. `is_single`: round every result to float32.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_evaluate(program text[], u anyarray, v anyarray, is_single boolean)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    functions CONSTANT text[] := @operators.FUNCTIONS@;
    arities CONSTANT integer[] := @operators.OPERANDS@;
    units u%TYPE := ARRAY[@extschema@.sparseeinsum_identity_of('prod', u), @extschema@.sparseeinsum_identity_of('sum', u)];
    n integer := cardinality(u);
    stack u%TYPE := '{}';
    a integer := -n; -- behind which the operands of an operation lie
    b integer;
    c integer;
    token text;
BEGIN
    FOREACH token IN ARRAY program LOOP
        a := a + n * (1 - coalesce(arities[array_position(functions, token)], 0));
        b := a + n;
        c := b + n;
        CASE token
        WHEN 'u' THEN
            stack := stack[:a] || u;
        WHEN 'v' THEN
            stack := stack[:a] || v;
        @operators.EVALUATIONS@ELSE
            stack := stack[:a] || array_fill(@extschema@.sparseeinsum_literal(substr(token, 2), u), ARRAY[n]);
        END CASE;
        IF is_single THEN
            FOR i IN a + 1..a + n LOOP stack[i] := @extschema@.sparseeinsum_narrow(stack[i]); END LOOP;
        END IF;
    END LOOP;
    RETURN stack[a + 1:a + n];
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_map(program text[], u anyarray, is_single boolean) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN @extschema@.sparseeinsum_evaluate(program, u, u, is_single);
END
$$;

