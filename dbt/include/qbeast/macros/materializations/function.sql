{# dbt's own steps, for the functions that Spark can store. #}
{% materialization function, adapter='qbeast', supported_languages=['sql', 'python', 'javascript'] %}
  {% do adapter.qbeast_check_scalar_sql(model) %}
  {{ return(materialization_function_default()) }}
{% endmaterialization %}


{% macro qbeast__scalar_function_create_replace_signature_sql(target_relation) %}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
  {{ comment_clause() }}
  RETURN
{% endmacro %}


{# An expression, or a query that returns one value. #}
{% macro qbeast__scalar_function_body_sql() %}
  (
    {{ model.compiled_code }}
  )
{% endmacro %}


{% macro qbeast__formatted_scalar_function_args_sql() %}
  {%- for argument in model.arguments -%}
    {{ adapter.quote(argument.name) }} {{ argument.data_type }}
    {%- if argument.get('default_value') is not none %} DEFAULT {{ argument.default_value }}{% endif -%}
    {{ ', ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{# Without a volatility, Spark derives it from the body. #}
{% macro qbeast__scalar_function_volatility_sql() %}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {% do unsupported_volatility_warning(volatility) %}
  {%- endif -%}
{% endmacro %}
